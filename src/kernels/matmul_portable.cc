// Baseline instructions of the target, through the vector extensions of GCC and clang.

// Vectors wider than the target's registers never cross a call here.
#pragma GCC diagnostic ignored "-Wpsabi"

#include <bit>

#include "base/dtype.h"
#include "kernels/matmul_run.h"

namespace orthrus {
namespace {

struct Portable {
  using Bytes [[gnu::vector_size(64)]] = uint8_t;
  using Shorts [[gnu::vector_size(64)]] = int16_t;
  using Ints [[gnu::vector_size(64)]] = int32_t;
  using Words [[gnu::vector_size(64)]] = uint32_t;
  using Floats [[gnu::vector_size(64)]] = float;

  static constexpr int kFloatRows = 2;
  static constexpr int kFloatPanels = 1;
  static constexpr int kFewFloatRows = 0;
  static constexpr int kFewFloatPanels = 0;
  static constexpr int kGroupRows = 2;
  static constexpr int kGroupPanels = 1;
  static constexpr int kPrefetchRows = 0;
  static constexpr int kFloatPrefetchBytes = 0;
  static constexpr int kGroupPrefetchBytes = 0;

  template <typename To>
  static ORTHRUS_INLINE To read(const void* p) {
    To value;
    __builtin_memcpy(&value, p, sizeof(To));
    return value;
  }

  static ORTHRUS_INLINE Floats zero() { return Floats{}; }
  static ORTHRUS_INLINE Floats splat(float v) { return v - Floats{}; }
  static ORTHRUS_INLINE Floats load(const void* p) { return read<Floats>(p); }
  static ORTHRUS_INLINE void store(float* p, const Floats& v) {
    __builtin_memcpy(p, &v, sizeof(v));
  }
  static ORTHRUS_INLINE Floats mul(const Floats& a, const Floats& b) { return a * b; }
  // Not fused: the baseline of x86-64 cannot. Within this path it is so for every row.
  static ORTHRUS_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return a * b + c;
  }
  static ORTHRUS_INLINE Floats minus_product(const Floats& a, const Floats& b, const Floats& c) {
    return c - a * b;
  }
  static ORTHRUS_INLINE Floats to_floats(const Ints& v) {
    return __builtin_convertvector(v, Floats);
  }

  static ORTHRUS_INLINE Floats load_bf16_even(const void* p) {
    return reinterpret_cast<Floats>(read<Words>(p) << 16);
  }
  static ORTHRUS_INLINE Floats load_bf16_odd(const void* p) {
    return reinterpret_cast<Floats>(read<Words>(p) & 0xffff0000u);
  }
  static ORTHRUS_INLINE Floats load_f16(const void* p) {
    f16_t halves[kLanes];
    __builtin_memcpy(halves, p, sizeof(halves));
    Floats out;
    for (int i = 0; i < kLanes; ++i) out[i] = f16_to_f32(halves[i]);
    return out;
  }
  static ORTHRUS_INLINE Floats load_i8(const void* p) {
    int8_t bytes[kLanes];
    __builtin_memcpy(bytes, p, sizeof(bytes));
    Floats out;
    for (int i = 0; i < kLanes; ++i) out[i] = bytes[i];
    return out;
  }
  static ORTHRUS_INLINE Floats load_low_nibbles(const void* p) {
    uint8_t bytes[kLanes];
    __builtin_memcpy(bytes, p, sizeof(bytes));
    Floats out;
    for (int i = 0; i < kLanes; ++i) out[i] = static_cast<float>(bytes[i] & 15);
    return out;
  }
  static ORTHRUS_INLINE Floats load_high_nibbles(const void* p) {
    uint8_t bytes[kLanes];
    __builtin_memcpy(bytes, p, sizeof(bytes));
    Floats out;
    for (int i = 0; i < kLanes; ++i) out[i] = static_cast<float>(bytes[i] >> 4);
    return out;
  }

  /// Magnitudes order like their bits; infinity and NaN are above all finite ones.
  static ORTHRUS_INLINE float largest_magnitude(const Floats& a, const Floats& b) {
    const Ints x = reinterpret_cast<Ints>(a) & 0x7fffffff;
    const Ints y = reinterpret_cast<Ints>(b) & 0x7fffffff;
    int32_t most = 0;
    for (int i = 0; i < kLanes; ++i) {
      most = x[i] > most ? x[i] : most;
      most = y[i] > most ? y[i] : most;
    }
    return std::bit_cast<float>(most);
  }
  /// Stores 16 values |v| < 2^22 rounded to nearest even as int8; returns their sum.
  static ORTHRUS_INLINE int32_t store_rounded(int8_t* out, const Floats& v) {
    // Adding 1.5 * 2^23 leaves the rounded integer in the low bits.
    const Ints rounded = reinterpret_cast<Ints>(v + 12582912.0f) - 0x4b400000;
    int32_t sum = 0;
    for (int i = 0; i < kLanes; ++i) {
      out[i] = static_cast<int8_t>(rounded[i]);
      sum += rounded[i];
    }
    return sum;
  }

  static ORTHRUS_INLINE Bytes load_bytes(const void* p) { return read<Bytes>(p); }
  template <int kShift, int kBits>
  static ORTHRUS_INLINE Bytes field(const Bytes& v) {
    constexpr uint8_t kMask = (1u << kBits) - 1;
    return kBits == 8 ? v : (v >> kShift) & kMask;
  }
  template <int kShift>
  static ORTHRUS_INLINE Bytes merge(const Bytes& low, const Bytes& high) {
    return low | (high << kShift);
  }
  static ORTHRUS_INLINE Bytes lookup(const uint8_t* table, const Bytes& v) {
    Bytes out;
    for (int i = 0; i < 64; ++i) out[i] = table[v[i]];
    return out;
  }

  template <int kFactor>
  static ORTHRUS_INLINE Ints splat_times(int32_t v) {
    return v * kFactor - Ints{};
  }

  // Bytes times bytes as 16-bit lanes, even and odd inputs apart: 255 * 127 fits.
  template <int kMostCode>
  struct Dot : DirectDot<Portable> {
    struct Inputs {
      Shorts even, odd;
    };
    static ORTHRUS_INLINE Inputs load(const int8_t* x) {
      auto pair = [](int8_t low, int8_t high) {
        uint32_t bits = static_cast<uint16_t>(low) | (static_cast<uint32_t>(high) << 16);
        return reinterpret_cast<Shorts>(bits - Words{});
      };
      return {pair(x[0], x[2]), pair(x[1], x[3])};
    }
    static ORTHRUS_INLINE Ints add(const Ints& sums, const Bytes& codes, const Inputs& x) {
      const Words words = reinterpret_cast<Words>(codes);
      const Ints even =
          reinterpret_cast<Ints>(reinterpret_cast<Shorts>(words & 0x00ff00ffu) * x.even);
      const Ints odd =
          reinterpret_cast<Ints>(reinterpret_cast<Shorts>((words >> 8) & 0x00ff00ffu) * x.odd);
      Ints acc = sums + ((even << 16) >> 16);
      acc += even >> 16;
      acc += (odd << 16) >> 16;
      return acc + (odd >> 16);
    }
  };
};

}  // namespace

const MatmulKernels& portable_matmul_kernels() { return kMatmulKernels<Portable>; }

}  // namespace orthrus
