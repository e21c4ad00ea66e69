// Guards the speed of the AVX-512 matmul, which callgrind cannot count: its time against that of
// the plain loops here, which are never optimised again, interleaved on one thread with weights
// that fit the cache. Fails where a ratio stays above its bound in every attempt.

// GCC 12 warns of uninitialised values inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))

namespace {

using namespace orthrus;

constexpr int64_t kInputs = 1024;
constexpr int64_t kOutputs = 256;
constexpr int64_t kMostRows = 8;
constexpr int64_t kPanels = kOutputs / 16;
constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE
constexpr int kAttempts = 5;
constexpr int kRounds = 9;  // of which the median counts
constexpr int kRuns = 50;   // of a round, of which the least times count

// The thread's own time, which other work on the machine does not stretch.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// weights [panel][pair of inputs][16 outputs][2]: one panel at a time, all rows.
template <int kRows>
AVX512 void reference_bf16(const std::vector<uint16_t>& weights, const float* x, float* out) {
  const uint16_t* at = weights.data();
  for (int64_t panel = 0; panel < kPanels; ++panel) {
    __m512 sums[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] = _mm512_setzero_ps();
    for (int64_t k = 0; k < kInputs; k += 2, at += 32) {
      const __m512i pair = _mm512_loadu_si512(at);
      const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
      const __m512 odd = _mm512_castsi512_ps(
          _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        sums[i] = _mm512_fmadd_ps(even, _mm512_set1_ps(x[i * kInputs + k]), sums[i]);
        sums[i] = _mm512_fmadd_ps(odd, _mm512_set1_ps(x[i * kInputs + k + 1]), sums[i]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) _mm512_storeu_ps(out + i * kOutputs + panel * 16, sums[i]);
  }
}

struct Q8 {
  std::vector<uint8_t> codes;  // [panel][quad of inputs][16 outputs][4], plus 128
  std::vector<float> scales;   // [panel][group of 32 inputs][16 outputs]
};

struct Q8Inputs {
  std::vector<int8_t> codes;    // [row][input]
  std::vector<float> scales;    // [row][group]
  std::vector<int32_t> shifts;  // [row][group]: -128 * sum of the codes
};

template <int kRows>
AVX512 void reference_q8(const Q8& weights, const Q8Inputs& x, float* out) {
  const uint8_t* codes = weights.codes.data();
  const float* scales = weights.scales.data();
  for (int64_t panel = 0; panel < kPanels; ++panel) {
    __m512 sums[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] = _mm512_setzero_ps();
    for (int64_t group = 0; group < kInputs / 32; ++group, scales += 16) {
      __m512i products[kRows];
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        products[i] = _mm512_set1_epi32(x.shifts[static_cast<size_t>(i * kInputs / 32 + group)]);
      }
      for (int64_t k = group * 32; k < group * 32 + 32; k += 4, codes += 64) {
        const __m512i w = _mm512_loadu_si512(codes);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          int32_t quad;
          std::memcpy(&quad, x.codes.data() + i * kInputs + k, sizeof(quad));
          products[i] = _mm512_dpbusd_epi32(products[i], w, _mm512_set1_epi32(quad));
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const __m512 scale =
            _mm512_set1_ps(x.scales[static_cast<size_t>(i * kInputs / 32 + group)]);
        sums[i] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(products[i]), scale),
                                  _mm512_loadu_ps(scales), sums[i]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) _mm512_storeu_ps(out + i * kOutputs + panel * 16, sums[i]);
  }
}

Q8Inputs quantised(const std::vector<float>& x) {
  Q8Inputs q;
  for (size_t begin = 0; begin < x.size(); begin += 32) {
    float most = 0;
    for (size_t k = begin; k < begin + 32; ++k) most = std::max(most, std::fabs(x[k]));
    int32_t sum = 0;
    for (size_t k = begin; k < begin + 32; ++k) {
      q.codes.push_back(static_cast<int8_t>(std::nearbyint(x[k] * (127.0f / most))));
      sum += q.codes.back();
    }
    q.scales.push_back(most / 127.0f);
    q.shifts.push_back(-128 * sum);
  }
  return q;
}

struct Comparison {
  std::string name;
  double bound;  // of the kernel's time over the reference's
  std::vector<float> kernel_out, reference_out;
  std::function<void()> kernel, reference;
};

template <typename Fn>
double least_time(double least, const Fn& run) {
  const double begin = now();
  for (int i = 0; i < 4; ++i) run();
  return std::min(least, now() - begin);
}

double median_ratio(const Comparison& c) {
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    double kernel = 1e9;
    double reference = 1e9;
    for (int run = 0; run < kRuns; ++run) {
      kernel = least_time(kernel, c.kernel);
      reference = least_time(reference, c.reference);
    }
    ratios.push_back(kernel / reference);
  }
  std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
  return ratios[kRounds / 2];
}

/// Both compute the same, or the comparison says nothing.
bool same_results(const Comparison& c) {
  c.kernel();
  c.reference();
  for (size_t i = 0; i < c.kernel_out.size(); ++i) {
    if (std::fabs(c.kernel_out[i] - c.reference_out[i]) > 1e-3f) {
      std::printf("%s: output %zu is %g, the reference has %g\n", c.name.c_str(), i,
                  double{c.kernel_out[i]}, double{c.reference_out[i]});
      return false;
    }
  }
  return true;
}

bool fast_enough(const Comparison& c) {
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const double ratio = median_ratio(c);
    std::printf("%s: %.2f times the reference's time, bound %.2f\n", c.name.c_str(), ratio,
                c.bound);
    if (ratio <= c.bound) return true;
  }
  return false;
}

}  // namespace

int main() {
  if (!isa_supported(Isa::kAvx512)) {
    std::printf("SKIP: this CPU has no AVX-512\n");
    return kSkipped;
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(kMostRows * kInputs);
  for (float& v : x) v = normal(random);
  const Q8Inputs q8_x = quantised(x);

  std::vector<bf16_t> bf16(kOutputs * kInputs);
  std::vector<uint16_t> bf16_panels(bf16.size());
  std::vector<std::byte> q8_blocks(static_cast<size_t>(kOutputs) *
                                   row_bytes(TensorType::kQ8_0, kInputs));
  Q8 q8{std::vector<uint8_t>(bf16.size()), std::vector<float>(bf16.size() / 32)};
  for (int64_t n = 0; n < kOutputs; ++n) {
    for (int64_t k = 0; k < kInputs; ++k) {
      const auto at = static_cast<size_t>(n * kInputs + k);
      bf16[at] = f32_to_bf16(0.05f * normal(random));
      const int64_t pair = (n / 16 * (kInputs / 2) + k / 2) * 32 + n % 16 * 2 + k % 2;
      std::memcpy(&bf16_panels[static_cast<size_t>(pair)], &bf16[at], 2);
      std::byte* block = q8_blocks.data() + at / 32 * 34;  // an f16 scale, then 32 codes
      if (k % 32 == 0) {
        const f16_t scale = f32_to_f16(0.0005f);
        std::memcpy(block, &scale, 2);
        q8.scales[static_cast<size_t>((n / 16 * (kInputs / 32) + k / 32) * 16 + n % 16)] =
            f16_to_f32(scale);
      }
      const auto code = static_cast<int8_t>(random());
      std::memcpy(block + 2 + k % 32, &code, 1);
      const int64_t quad = (n / 16 * (kInputs / 4) + k / 4) * 64 + n % 16 * 4 + k % 4;
      q8.codes[static_cast<size_t>(quad)] = static_cast<uint8_t>(code + 128);
    }
  }

  ThreadPool pool(1);
  const ComputeContext context{Isa::kAvx512, pool};
  const PackedMatrix bf16_matrix = pack({.type = TensorType::kBF16,
                                         .data = std::as_bytes(std::span(bf16)),
                                         .rows = kOutputs,
                                         .cols = kInputs},
                                        WeightFormat::kAuto, pool);
  const PackedMatrix q8_matrix =
      pack({.type = TensorType::kQ8_0, .data = q8_blocks, .rows = kOutputs, .cols = kInputs},
           WeightFormat::kAuto, pool);

  bool good = true;
  auto compare = [&](const std::string& name, const PackedMatrix& matrix, int64_t rows,
                     double bound, auto reference) {
    Activations activations;
    activations.set(context, x.data(), kInputs, rows, kInputs, activation_forms(matrix));
    Comparison c{name, bound, {}, {}, {}, {}};
    c.kernel_out.resize(static_cast<size_t>(rows * kOutputs));
    c.reference_out = c.kernel_out;
    const MatmulTask task{&matrix, 0, rows, c.kernel_out.data(), kOutputs};
    c.kernel = [&] { matmul(context, activations, {&task, 1}); };
    c.reference = [&] { reference(c.reference_out.data()); };
    good = same_results(c) && fast_enough(c) && good;
  };
  compare("bf16, 1 row", bf16_matrix, 1, 0.45,
          [&](float* out) { reference_bf16<1>(bf16_panels, x.data(), out); });
  compare("bf16, 8 rows", bf16_matrix, 8, 1.05,
          [&](float* out) { reference_bf16<8>(bf16_panels, x.data(), out); });
  compare("q8, 1 row", q8_matrix, 1, 0.95, [&](float* out) { reference_q8<1>(q8, q8_x, out); });
  compare("q8, 8 rows", q8_matrix, 8, 1.15, [&](float* out) { reference_q8<8>(q8, q8_x, out); });
  return good ? 0 : 1;
}
