// Guards the speed of the AVX-512 matmuls, which callgrind cannot count: their time against that of
// the plain loops here, which are never optimised again, interleaved on one thread.
//
// What keeps a ratio the same from run to run and from build to build:
// - All data lies in the first-level cache, so that instructions alone count. What the second level
//   delivers changes by half for milliseconds at a time.
// - The loops here are unrolled over 32 inputs: a short loop takes up to a quarter longer where
//   the linker happens to put it across a cache line.
// - The clock is the wall's. The thread's own comes from the scheduler, which in a virtual machine
//   takes stolen time off another sample than it was stolen from; the least of many is then too
//   small.
// - Noise only adds time: the least samples count, and more are taken while they are too slow.

// GCC 12 warns of uninitialised values inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/dtype.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma"
#define AVX512 __attribute__((target(TARGET)))
#define AVX512_BF16 __attribute__((target(TARGET ",avx512bf16")))
#define AVX512_INLINE __attribute__((target(TARGET), always_inline)) inline
#define UNROLL _Pragma("GCC unroll 16")

namespace {

using namespace orthrus;

constexpr int64_t kInputs = 128;
constexpr int64_t kMostPanels = 4;  // of 16 outputs
constexpr int64_t kMostRows = 8;
constexpr int64_t kGroups = kInputs / 32;
constexpr int64_t kProducts = 16;  // in a call, so that the call itself is a small part of it
constexpr int kSamples = 500;      // of each, in one attempt
constexpr int kAttempts = 100;
constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

/// Zeros at a page.
template <typename T>
class Values {
 public:
  explicit Values(int64_t count)
      : buffer_(static_cast<size_t>(count) * sizeof(T)), count_(static_cast<size_t>(count)) {}
  T* data() { return buffer_.as<T>(); }
  const T* data() const { return buffer_.as<T>(); }
  T& operator[](int64_t i) { return data()[i]; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(data(), count_)); }

 private:
  AlignedBuffer buffer_;
  size_t count_;
};

AVX512_INLINE __m512i four_bytes(const void* p) {
  int32_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

template <int kRows, int kPanels>
AVX512_INLINE void clear(__m512 (&sums)[kRows][kPanels]) {
  UNROLL for (int i = 0; i < kRows; ++i) {
    UNROLL for (int p = 0; p < kPanels; ++p) sums[i][p] = _mm512_setzero_ps();
  }
}

template <int kRows, int kPanels>
AVX512_INLINE void store(const __m512 (&sums)[kRows][kPanels], float* out) {
  UNROLL for (int i = 0; i < kRows; ++i) {
    UNROLL for (int p = 0; p < kPanels; ++p) {
      _mm512_storeu_ps(out + (i * kPanels + p) * 16, sums[i][p]);
    }
  }
}

// The references: kRows rows by kPanels panels.

/// weights [panel][pair of inputs][16 outputs][2], x [row][input]
template <int kRows, int kPanels>
AVX512 void reference_bf16(const uint16_t* weights, const float* x, float* out) {
  __m512 sums[kRows][kPanels];
  clear(sums);
  for (int64_t k = 0; k < kInputs; k += 2, weights += 32) {
    __m512 even[kPanels], odd[kPanels];
    UNROLL for (int p = 0; p < kPanels; ++p) {
      const __m512i pair = _mm512_loadu_si512(weights + p * 16 * kInputs);
      even[p] = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
      odd[p] = _mm512_castsi512_ps(
          _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
    }
    UNROLL for (int i = 0; i < kRows; ++i) {
      const __m512 first = _mm512_set1_ps(x[i * kInputs + k]);
      const __m512 second = _mm512_set1_ps(x[i * kInputs + k + 1]);
      UNROLL for (int p = 0; p < kPanels; ++p) {
        sums[i][p] = _mm512_fmadd_ps(even[p], first, sums[i][p]);
        sums[i][p] = _mm512_fmadd_ps(odd[p], second, sums[i][p]);
      }
    }
  }
  store(sums, out);
}

/// The same weights, x rounded to bf16.
template <int kRows, int kPanels>
AVX512_BF16 void reference_bf16_pairs(const uint16_t* weights, const uint16_t* x, float* out) {
  __m512 sums[kRows][kPanels];
  clear(sums);
#pragma GCC unroll 4
  for (int64_t k = 0; k < kInputs; k += 2, weights += 32) {
    __m512i pairs[kPanels];
    UNROLL for (int p = 0; p < kPanels; ++p) {
      pairs[p] = _mm512_loadu_si512(weights + p * 16 * kInputs);
    }
    UNROLL for (int i = 0; i < kRows; ++i) {
      const __m512i inputs = four_bytes(x + i * kInputs + k);
      UNROLL for (int p = 0; p < kPanels; ++p) {
        sums[i][p] = _mm512_dpbf16_ps(sums[i][p], reinterpret_cast<__m512bh>(pairs[p]),
                                      reinterpret_cast<__m512bh>(inputs));
      }
    }
  }
  store(sums, out);
}

struct Q8 {
  Values<uint8_t> codes{kMostPanels * 16 * kInputs};  // [panel][quad of inputs][16][4], plus 128
  Values<float> scales{kMostPanels * 16 * kGroups};   // [panel][group of 32 inputs][16]
};

struct Q8Inputs {
  Values<int8_t> codes{kMostRows * kInputs};    // [row][input]
  Values<float> scales{kMostRows * kGroups};    // [row][group]
  Values<int32_t> shifts{kMostRows * kGroups};  // [row][group]: -128 * sum of the codes
};

template <int kRows, int kPanels>
AVX512 void reference_q8(const Q8& weights, int64_t panel, const Q8Inputs& x, float* out) {
  const uint8_t* codes = weights.codes.data() + panel * 16 * kInputs;
  const float* scales = weights.scales.data() + panel * 16 * kGroups;
  __m512 sums[kRows][kPanels];
  clear(sums);
  for (int64_t group = 0; group < kGroups; ++group, scales += 16) {
    __m512i products[kRows][kPanels];
    UNROLL for (int i = 0; i < kRows; ++i) {
      UNROLL for (int p = 0; p < kPanels; ++p) {
        products[i][p] = four_bytes(x.shifts.data() + i * kGroups + group);
      }
    }
    UNROLL for (int64_t quad = 0; quad < 8; ++quad, codes += 64) {
      __m512i w[kPanels];
      UNROLL for (int p = 0; p < kPanels; ++p) {
        w[p] = _mm512_loadu_si512(codes + p * 16 * kInputs);
      }
      UNROLL for (int i = 0; i < kRows; ++i) {
        const __m512i four = four_bytes(x.codes.data() + i * kInputs + group * 32 + quad * 4);
        UNROLL for (int p = 0; p < kPanels; ++p) {
          products[i][p] = _mm512_dpbusd_epi32(products[i][p], w[p], four);
        }
      }
    }
    UNROLL for (int i = 0; i < kRows; ++i) {
      const __m512 scale = _mm512_set1_ps(x.scales.data()[i * kGroups + group]);
      UNROLL for (int p = 0; p < kPanels; ++p) {
        sums[i][p] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(products[i][p]), scale),
                                     _mm512_loadu_ps(scales + p * 16 * kGroups), sums[i][p]);
      }
    }
  }
  store(sums, out);
}

/// Weights and inputs in the forms that matmul and the references read.
struct Data {
  Values<float> x{kMostRows * kInputs};
  Values<uint16_t> rounded_x{kMostRows * kInputs};
  Q8Inputs q8_x;
  Values<bf16_t> bf16{kMostPanels * 16 * kInputs};  // [output][input]
  Values<uint16_t> bf16_panels{kMostPanels * 16 * kInputs};
  Values<std::byte> q8_blocks{kMostPanels * 16 * kGroups * 34};  // an f16 scale, then 32 codes
  Q8 q8;
};

void make_inputs(Data& data, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (int64_t group = 0; group < kMostRows * kGroups; ++group) {
    float* x = &data.x[group * 32];
    float most = 0;
    for (int k = 0; k < 32; ++k) {
      x[k] = normal(random);
      data.rounded_x[group * 32 + k] = f32_to_bf16(x[k]);
      most = std::max(most, std::fabs(x[k]));
    }
    int32_t sum = 0;
    for (int k = 0; k < 32; ++k) {
      const auto code = static_cast<int8_t>(std::nearbyint(x[k] * (127.0f / most)));
      data.q8_x.codes[group * 32 + k] = code;
      sum += code;
    }
    data.q8_x.scales[group] = most / 127.0f;
    data.q8_x.shifts[group] = -128 * sum;
  }
}

void make_weights(Data& data, std::mt19937& random) {
  std::normal_distribution<float> normal;
  const f16_t scale = f32_to_f16(0.0005f);
  for (int64_t n = 0; n < kMostPanels * 16; ++n) {
    const int64_t panel = n / 16, lane = n % 16;
    for (int64_t k = 0; k < kInputs; ++k) {
      const bf16_t value = f32_to_bf16(0.05f * normal(random));
      data.bf16[n * kInputs + k] = value;
      data.bf16_panels[(panel * (kInputs / 2) + k / 2) * 32 + lane * 2 + k % 2] = value;
      const auto code = static_cast<int8_t>(random());
      std::byte* block = &data.q8_blocks[(n * kGroups + k / 32) * 34];
      std::memcpy(block, &scale, 2);
      std::memcpy(block + 2 + k % 32, &code, 1);
      data.q8.codes[(panel * (kInputs / 4) + k / 4) * 64 + lane * 4 + k % 4] =
          static_cast<uint8_t>(code + 128);
      data.q8.scales[(panel * kGroups + k / 32) * 16 + lane] = f16_to_f32(scale);
    }
  }
}

double seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Guard {
 public:
  explicit Guard(Isa isa) : isa_(isa), name_(isa_name(isa)) {}

  /// Whether matmul of `rows` rows takes at most `bound` times as long as the reference, which
  /// fills the same outputs.
  template <typename Reference>
  bool check(const std::string& what, TensorType type, std::span<const std::byte> weights,
             int64_t panels, const Data& data, int64_t rows, double bound,
             const Reference& reference) {
    const int64_t outputs = panels * 16;
    const PackedMatrix matrix =
        pack({.type = type,
              .data = weights.first(static_cast<size_t>(outputs) * row_bytes(type, kInputs)),
              .rows = outputs,
              .cols = kInputs},
             WeightFormat::kAuto, pool_);
    const ComputeContext context{isa_, pool_};
    Activations activations;
    activations.set(context, data.x.data(), kInputs, rows, kInputs, activation_forms(matrix));
    Values<float> found(rows * outputs), expected(rows * outputs);
    const std::vector<MatmulTask> tasks(kProducts,
                                        MatmulTask{&matrix, 0, rows, found.data(), outputs});
    const std::string name = name_ + ", " + what;
    return same(
               name, rows * outputs, found, expected, [&] { matmul(context, activations, tasks); },
               [&] { reference(expected.data()); }) &&
           fast(
               name, bound, [&] { matmul(context, activations, tasks); },
               [&] {
                 for (int64_t i = 0; i < kProducts; ++i) reference(expected.data());
               });
  }

 private:
  /// Both compute the same, or the comparison says nothing.
  static bool same(const std::string& name, int64_t count, Values<float>& found,
                   Values<float>& expected, const std::function<void()>& kernel,
                   const std::function<void()>& reference) {
    kernel();
    reference();
    for (int64_t i = 0; i < count; ++i) {
      if (std::fabs(found[i] - expected[i]) > 1e-3f) {
        std::printf("%s: output %lld is %g, the reference has %g\n", name.c_str(),
                    static_cast<long long>(i), double{found[i]}, double{expected[i]});
        return false;
      }
    }
    return true;
  }

  static bool fast(const std::string& name, double bound, const std::function<void()>& kernel,
                   const std::function<void()>& reference) {
    double of_kernel = 1e9;
    double of_reference = 1e9;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      for (int sample = 0; sample < kSamples; ++sample) {
        of_kernel = std::min(of_kernel, seconds(kernel));
        of_reference = std::min(of_reference, seconds(reference));
      }
      if (of_kernel <= bound * of_reference) break;
    }
    std::printf("%s: %.0f ns, %.2f times the reference's time, bound %.2f\n", name.c_str(),
                1e9 * of_kernel / kProducts, of_kernel / of_reference, bound);
    return of_kernel <= bound * of_reference;
  }

  Isa isa_;
  std::string name_;
  ThreadPool pool_{1};
};

}  // namespace

int main() {
  if (!isa_supported(Isa::kAvx512)) {
    std::printf("SKIP: this CPU has no AVX-512 with VNNI\n");
    return kSkipped;
  }
  std::mt19937 random(1);
  Data data;
  make_inputs(data, random);
  make_weights(data, random);
  const uint16_t* bf16 = data.bf16_panels.data();
  const auto bf16_bytes = data.bf16.bytes();
  const auto q8_bytes = data.q8_blocks.bytes();
  bool good = true;

  // About an eighth over the ratios of an AMD EPYC of family 26, which differ by up to 4 %.
  Guard avx512(Isa::kAvx512);
  good &= avx512.check("bf16, 1 row", TensorType::kBF16, bf16_bytes, 4, data, 1, 1.2,
                       [&](float* out) { reference_bf16<1, 4>(bf16, data.x.data(), out); });
  good &= avx512.check("bf16, 6 rows", TensorType::kBF16, bf16_bytes, 4, data, 6, 1.2,
                       [&](float* out) { reference_bf16<6, 4>(bf16, data.x.data(), out); });
  // Of one row matmul takes one panel at a time, as memory wants it.
  good &= avx512.check("q8, 1 row", TensorType::kQ8_0, q8_bytes, 4, data, 1, 1.5, [&](float* out) {
    for (int64_t p = 0; p < 4; ++p) reference_q8<1, 1>(data.q8, p, data.q8_x, out + p * 16);
  });
  // And of six: from the first-level cache two at a time would be faster by a sixth.
  good &= avx512.check("q8, 6 rows", TensorType::kQ8_0, q8_bytes, 2, data, 6, 1.65,
                       [&](float* out) { reference_q8<6, 2>(data.q8, 0, data.q8_x, out); });

  if (!isa_supported(Isa::kAvx512Bf16)) {
    std::printf("avx512_bf16: skipped, this CPU has no AVX512_BF16\n");
    return good ? 0 : 1;
  }
  Guard avx512_bf16(Isa::kAvx512Bf16);
  const uint16_t* rounded = data.rounded_x.data();
  good &= avx512_bf16.check("bf16, 1 row", TensorType::kBF16, bf16_bytes, 4, data, 1, 1.5,
                            [&](float* out) { reference_bf16_pairs<1, 4>(bf16, rounded, out); });
  good &= avx512_bf16.check("bf16, 8 rows", TensorType::kBF16, bf16_bytes, 3, data, 8, 1.15,
                            [&](float* out) {
                              reference_bf16_pairs<4, 3>(bf16, rounded, out);
                              reference_bf16_pairs<4, 3>(bf16, rounded + 4 * kInputs, out + 4 * 48);
                            });
  return good ? 0 : 1;
}
