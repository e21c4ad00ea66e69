// AVX-512 with VNNI: 16 outputs are one register.

#include <immintrin.h>

#include "kernels/matmul_run.h"

namespace orthrus {
namespace {

struct Avx512 {
  using Bytes = __m512i;
  using Ints = __m512i;
  using Floats = __m512;

  // 32 registers: 6 x 4 sums, 4 weights and one input for floats; 6 x 2 integer and 6 x 2 float
  // sums, two codes, an input, a mask and two scales for groups. Two panels, since one load of an
  // input a dot product would be as slow as the dot products.
  static constexpr int kFloatRows = 6;
  static constexpr int kFloatPanels = 4;
  static constexpr int kFewFloatRows = 0;
  static constexpr int kFewFloatPanels = 0;
  static constexpr int kGroupRows = 6;
  static constexpr int kGroupPanels = 2;
  static constexpr int kPrefetchRows = 6;  // of float tiles
  static constexpr int kFloatPrefetchBytes = 1024;
  static constexpr int kGroupPrefetchBytes = 2560;

  // GCC 12 warns of uninitialised values inside the unmasked forms of some intrinsics; with all
  // lanes in the mask it emits the same instruction.
  static constexpr __mmask16 kAllLanes = 0xffff;

  static ORTHRUS_INLINE Floats zero() { return _mm512_setzero_ps(); }
  static ORTHRUS_INLINE Floats splat(float v) { return _mm512_set1_ps(v); }
  static ORTHRUS_INLINE Floats load(const void* p) { return _mm512_loadu_ps(p); }
  static ORTHRUS_INLINE void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static ORTHRUS_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static ORTHRUS_INLINE Floats fma(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static ORTHRUS_INLINE Floats minus_product(Floats a, Floats b, Floats c) {
    return _mm512_fnmadd_ps(a, b, c);
  }
  static ORTHRUS_INLINE Floats to_floats(Ints v) {
    return __builtin_convertvector(reinterpret_cast<__v16si>(v), __v16sf);
  }

  static ORTHRUS_INLINE Floats load_bf16_even(const void* p) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAllLanes, _mm512_loadu_si512(p), 16));
  }
  static ORTHRUS_INLINE Floats load_bf16_odd(const void* p) {
    const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), mask));
  }
  static ORTHRUS_INLINE Floats load_f16(const void* p) {
    return _mm512_maskz_cvtph_ps(kAllLanes, _mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static ORTHRUS_INLINE __m128i load_16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  static ORTHRUS_INLINE Floats widen_i8(__m128i v) {
    return to_floats(_mm512_maskz_cvtepi8_epi32(kAllLanes, v));
  }
  static ORTHRUS_INLINE Floats load_i8(const void* p) { return widen_i8(load_16(p)); }
  static ORTHRUS_INLINE Floats load_low_nibbles(const void* p) {
    return widen_i8(_mm_and_si128(load_16(p), _mm_set1_epi8(15)));
  }
  static ORTHRUS_INLINE Floats load_high_nibbles(const void* p) {
    return widen_i8(_mm_and_si128(_mm_srli_epi16(load_16(p), 4), _mm_set1_epi8(15)));
  }

  static ORTHRUS_INLINE int32_t largest_of(__m128i v) {
    v = _mm_max_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
  }
  static ORTHRUS_INLINE int32_t sum_of_bytes(__m128i v) {
    // Bytes against zero after adding 128: sums of eight, without overflow.
    v = _mm_sad_epu8(_mm_xor_si128(v, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(v) + _mm_extract_epi16(v, 4) - 16 * 128;
  }
  /// Magnitudes order like their bits; infinity and NaN are above all finite ones.
  static ORTHRUS_INLINE float largest_magnitude(Floats a, Floats b) {
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i most =
        _mm512_maskz_max_epi32(kAllLanes, _mm512_and_si512(_mm512_castps_si512(a), mask),
                               _mm512_and_si512(_mm512_castps_si512(b), mask));
    struct Halves {
      __m256i low, high;
    };
    const auto halves = __builtin_bit_cast(Halves, most);
    const __m256i half = _mm256_max_epi32(halves.low, halves.high);
    const int32_t bits =
        largest_of(_mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
    return __builtin_bit_cast(float, bits);
  }
  /// Stores 16 values of at most 127 rounded to nearest even as int8; returns their sum.
  static ORTHRUS_INLINE int32_t store_rounded(int8_t* out, Floats v) {
    const __m128i bytes =
        _mm512_maskz_cvtepi32_epi8(kAllLanes, _mm512_maskz_cvtps_epi32(kAllLanes, v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    return sum_of_bytes(bytes);
  }

  static ORTHRUS_INLINE Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
  template <int kShift, int kBits>
  static ORTHRUS_INLINE Bytes field(Bytes v) {
    if constexpr (kBits == 8) return v;
    const __m512i mask = _mm512_set1_epi8(static_cast<char>((1 << kBits) - 1));
    if constexpr (kShift == 0) return _mm512_and_si512(v, mask);
    return _mm512_and_si512(_mm512_srli_epi16(v, kShift), mask);
  }
  template <int kShift>
  static ORTHRUS_INLINE Bytes merge(Bytes low, Bytes high) {
    return _mm512_or_si512(low, _mm512_slli_epi16(high, kShift));
  }
  static ORTHRUS_INLINE Bytes lookup(const uint8_t* table, Bytes v) {
    return _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(kAllLanes, load_16(table)), v);
  }

  template <int kFactor>
  static ORTHRUS_INLINE Ints splat_times(int32_t v) {  // kFactor: a power of two
    return _mm512_maskz_slli_epi32(kAllLanes, _mm512_set1_epi32(v), __builtin_ctz(kFactor));
  }

  template <int kMostCode>
  struct Dot : DirectDot<Avx512> {
    static ORTHRUS_INLINE __m512i load(const int8_t* x) {
      int32_t quad;
      __builtin_memcpy(&quad, x, sizeof(quad));
      return _mm512_set1_epi32(quad);
    }
    static ORTHRUS_INLINE Ints add(Ints acc, Bytes codes, __m512i x) {
      return _mm512_dpbusd_epi32(acc, codes, x);
    }
  };
};

}  // namespace

const MatmulKernels& avx512_matmul_kernels() { return kMatmulKernels<Avx512>; }

}  // namespace orthrus
