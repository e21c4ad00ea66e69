// AArch64 with the dot product of bytes: 16 outputs are four registers.

#include <arm_neon.h>

#include "kernels/matmul_run.h"

namespace orthrus {
namespace {

template <typename T>
struct Quad {
  T part[4];

  /// part[i] = fn(i)
  template <typename Fn>
  static ORTHRUS_INLINE Quad make(Fn&& fn) {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
};

struct Neon {
  using Bytes = Quad<uint8x16_t>;
  using Ints = Quad<int32x4_t>;
  using Floats = Quad<float32x4_t>;

  // 32 registers: 6 sums of four, one weight and inputs for floats; 3 integer and 3 float sums,
  // codes, an input and a constant for groups.
  static constexpr int kFloatRows = 6;
  static constexpr int kFloatPanels = 1;
  static constexpr int kFewFloatRows = 0;
  static constexpr int kFewFloatPanels = 0;
  static constexpr int kGroupRows = 3;
  static constexpr int kGroupPanels = 1;
  static constexpr int kPrefetchRows = 2;
  static constexpr int kFloatPrefetchBytes = 1024;
  static constexpr int kGroupPrefetchBytes = 1024;

  static ORTHRUS_INLINE Floats zero() { return splat(0.0f); }
  static ORTHRUS_INLINE Floats splat(float v) {
    const float32x4_t part = vdupq_n_f32(v);
    return {{part, part, part, part}};
  }
  static ORTHRUS_INLINE Floats load(const void* p) {
    const auto* f = static_cast<const float*>(p);
    return Floats::make([&](int i) ORTHRUS_INLINE_LAMBDA { return vld1q_f32(f + 4 * i); });
  }
  static ORTHRUS_INLINE void store(float* p, const Floats& v) {
    ORTHRUS_UNROLL for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, v.part[i]);
  }
  static ORTHRUS_INLINE Floats mul(const Floats& a, const Floats& b) {
    return Floats::make([&](int i)
                            ORTHRUS_INLINE_LAMBDA { return vmulq_f32(a.part[i], b.part[i]); });
  }
  static ORTHRUS_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return Floats::make(
        [&](int i) ORTHRUS_INLINE_LAMBDA { return vfmaq_f32(c.part[i], a.part[i], b.part[i]); });
  }
  static ORTHRUS_INLINE Floats minus_product(const Floats& a, const Floats& b, const Floats& c) {
    return Floats::make(
        [&](int i) ORTHRUS_INLINE_LAMBDA { return vfmsq_f32(c.part[i], a.part[i], b.part[i]); });
  }
  static ORTHRUS_INLINE Floats to_floats(const Ints& v) {
    return Floats::make([&](int i) ORTHRUS_INLINE_LAMBDA { return vcvtq_f32_s32(v.part[i]); });
  }

  static ORTHRUS_INLINE Floats load_bf16_even(const void* p) {
    const auto* pairs = static_cast<const uint32_t*>(p);
    return Floats::make([&](int i) ORTHRUS_INLINE_LAMBDA {
      return vreinterpretq_f32_u32(vshlq_n_u32(vld1q_u32(pairs + 4 * i), 16));
    });
  }
  static ORTHRUS_INLINE Floats load_bf16_odd(const void* p) {
    const auto* pairs = static_cast<const uint32_t*>(p);
    const uint32x4_t mask = vdupq_n_u32(0xffff0000u);
    return Floats::make([&](int i) ORTHRUS_INLINE_LAMBDA {
      return vreinterpretq_f32_u32(vandq_u32(vld1q_u32(pairs + 4 * i), mask));
    });
  }
  static ORTHRUS_INLINE Floats load_f16(const void* p) {
    const auto* halves = static_cast<const uint16_t*>(p);
    return Floats::make([&](int i) ORTHRUS_INLINE_LAMBDA {
      return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves + 4 * i)));
    });
  }
  static ORTHRUS_INLINE Floats widen_i8(int8x16_t v) {
    const int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);
    return to_floats({{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low),
                       vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)}});
  }
  static ORTHRUS_INLINE Floats load_i8(const void* p) {
    return widen_i8(vld1q_s8(static_cast<const int8_t*>(p)));
  }
  static ORTHRUS_INLINE Floats load_low_nibbles(const void* p) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const uint8_t*>(p));
    return widen_i8(vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15))));
  }
  static ORTHRUS_INLINE Floats load_high_nibbles(const void* p) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const uint8_t*>(p));
    return widen_i8(vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4)));
  }

  /// Magnitudes order like their bits; infinity and NaN are above all finite ones.
  static ORTHRUS_INLINE float largest_magnitude(const Floats& x, const Floats& y) {
    uint32x4_t most = vdupq_n_u32(0);
    ORTHRUS_UNROLL for (int i = 0; i < 4; ++i) {
      most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(x.part[i])));
      most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(y.part[i])));
    }
    return __builtin_bit_cast(float, vmaxvq_u32(most));
  }
  /// Stores 16 values of at most 127 rounded to nearest even as int8; returns their sum.
  static ORTHRUS_INLINE int32_t store_rounded(int8_t* out, const Floats& v) {
    auto words = [&](int i) ORTHRUS_INLINE_LAMBDA {
      return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v.part[i])),
                          vmovn_s32(vcvtnq_s32_f32(v.part[i + 1])));
    };
    const int8x16_t bytes = vcombine_s8(vmovn_s16(words(0)), vmovn_s16(words(2)));
    vst1q_s8(out, bytes);
    return vaddlvq_s8(bytes);
  }

  static ORTHRUS_INLINE Bytes load_bytes(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return Bytes::make([&](int i) ORTHRUS_INLINE_LAMBDA { return vld1q_u8(bytes + 16 * i); });
  }
  template <int kShift, int kBits>
  static ORTHRUS_INLINE Bytes field(const Bytes& v) {
    return Bytes::make([&](int i) ORTHRUS_INLINE_LAMBDA {
      uint8x16_t part = v.part[i];
      if constexpr (kShift > 0) part = vshrq_n_u8(part, kShift);
      if constexpr (kShift + kBits < 8) part = vandq_u8(part, vdupq_n_u8((1 << kBits) - 1));
      return part;
    });
  }
  template <int kShift>
  static ORTHRUS_INLINE Bytes merge(const Bytes& low, const Bytes& high) {
    return Bytes::make(
        [&](int i) ORTHRUS_INLINE_LAMBDA { return vsliq_n_u8(low.part[i], high.part[i], kShift); });
  }
  static ORTHRUS_INLINE Bytes lookup(const uint8_t* table, const Bytes& v) {
    const uint8x16_t values = vld1q_u8(table);
    return Bytes::make([&](int i) ORTHRUS_INLINE_LAMBDA { return vqtbl1q_u8(values, v.part[i]); });
  }

  template <int kFactor>
  static ORTHRUS_INLINE Ints splat_times(int32_t v) {
    const int32x4_t part = vdupq_n_s32(v * kFactor);
    return {{part, part, part, part}};
  }

  /// There is no product of unsigned and signed bytes: codes up to 255, whose zero is 128, lose it
  /// and become signed; those below 64 are so as they are. All sums are exact.
  template <int kMostCode>
  struct Dot : DirectDot<Neon> {
    static constexpr bool kSigned = kMostCode > 127;
    static ORTHRUS_INLINE Bytes weights(const Bytes& codes) {
      if constexpr (!kSigned) return codes;
      return Bytes::make(
          [&](int i) ORTHRUS_INLINE_LAMBDA { return veorq_u8(codes.part[i], vdupq_n_u8(128)); });
    }
    static ORTHRUS_INLINE int8x16_t load(const int8_t* x) {
      int32_t quad;
      __builtin_memcpy(&quad, x, sizeof(quad));
      return vreinterpretq_s8_s32(vdupq_n_s32(quad));
    }
    static ORTHRUS_INLINE Ints add(const Ints& sums, const Bytes& codes, int8x16_t x) {
      return Ints::make([&](int i) ORTHRUS_INLINE_LAMBDA {
        return vdotq_s32(sums.part[i], vreinterpretq_s8_u8(codes.part[i]), x);
      });
    }
  };
};

}  // namespace

const MatmulKernels& neon_matmul_kernels() { return kMatmulKernels<Neon>; }

}  // namespace orthrus
