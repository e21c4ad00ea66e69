#pragma once

// AVX2 with FMA and F16C: 16 outputs are two registers.

#include <immintrin.h>

#include "kernels/matmul_run.h"

namespace orthrus {
namespace {

// The upper 16 bits of each lane.
alignas(32) constexpr uint32_t kUpperHalves[8] = {0xffff0000, 0xffff0000, 0xffff0000, 0xffff0000,
                                                  0xffff0000, 0xffff0000, 0xffff0000, 0xffff0000};

struct Avx2 {
  struct Bytes {
    __m256i a, b;
  };
  using Ints = Bytes;
  struct Floats {
    __m256 a, b;
  };

  // 16 registers: 6 x 2 sums, two weights and one input for floats; 6 x 2 integer sums, codes
  // and inputs for groups, whose float sums the compiler keeps in memory.
  static constexpr int kFloatRows = 6;
  static constexpr int kFloatPanels = 1;
  static constexpr int kFewFloatRows = 2;
  static constexpr int kFewFloatPanels = 2;
  static constexpr int kGroupRows = 6;
  static constexpr int kGroupPanels = 1;
  static constexpr int kPrefetchRows = 6;
  static constexpr int kFloatPrefetchBytes = 4096;
  static constexpr int kGroupPrefetchBytes = 1024;

  static ORTHRUS_INLINE Floats zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static ORTHRUS_INLINE Floats splat(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
  static ORTHRUS_INLINE Floats load(const void* p) {
    const auto* f = static_cast<const float*>(p);
    return {_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)};
  }
  static ORTHRUS_INLINE void store(float* p, Floats v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
  }
  static ORTHRUS_INLINE Floats mul(Floats a, Floats b) {
    return {_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
  }
  static ORTHRUS_INLINE Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b)};
  }
  static ORTHRUS_INLINE Floats minus_product(Floats a, Floats b, Floats c) {
    return {_mm256_fnmadd_ps(a.a, b.a, c.a), _mm256_fnmadd_ps(a.b, b.b, c.b)};
  }
  static ORTHRUS_INLINE Floats to_floats(Ints v) {
    return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)};
  }

  static ORTHRUS_INLINE Floats load_bf16_even(const void* p) {
    const Bytes v = load_bytes(p);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(v.a, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(v.b, 16))};
  }
  // The mask is an operand in memory: a compiler would give it the register that six rows lack.
  static ORTHRUS_INLINE __m256 upper_halves(__m256i v) {
    __m256i upper;
    asm("vpand %2, %1, %0" : "=x"(upper) : "x"(v), "m"(kUpperHalves));
    return _mm256_castsi256_ps(upper);
  }
  static ORTHRUS_INLINE Floats load_bf16_odd(const void* p) {
    const Bytes v = load_bytes(p);
    return {upper_halves(v.a), upper_halves(v.b)};
  }
  static ORTHRUS_INLINE __m128i load_16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  static ORTHRUS_INLINE Floats load_f16(const void* p) {
    return {_mm256_cvtph_ps(load_16(p)),
            _mm256_cvtph_ps(load_16(static_cast<const char*>(p) + 16))};
  }
  static ORTHRUS_INLINE Floats widen_i8(__m128i v) {
    return to_floats({_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
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
  static ORTHRUS_INLINE float largest_magnitude(Floats x, Floats y) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    auto bits = [&](__m256 v) { return _mm256_and_si256(_mm256_castps_si256(v), mask); };
    const __m256i most = _mm256_max_epi32(_mm256_max_epi32(bits(x.a), bits(x.b)),
                                          _mm256_max_epi32(bits(y.a), bits(y.b)));
    const int32_t largest =
        largest_of(_mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1)));
    return __builtin_bit_cast(float, largest);
  }
  /// Stores 16 values of at most 127 rounded to nearest even as int8; returns their sum.
  static ORTHRUS_INLINE int32_t store_rounded(int8_t* out, Floats v) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);  // packing works in halves
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    return sum_of_bytes(bytes);
  }

  static ORTHRUS_INLINE Bytes load_bytes(const void* p) {
    const auto* v = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
  }
  template <int kShift, int kBits>
  static ORTHRUS_INLINE Bytes field(Bytes v) {
    if constexpr (kBits == 8) return v;
    const __m256i mask = _mm256_set1_epi8(static_cast<char>((1 << kBits) - 1));
    return {_mm256_and_si256(_mm256_srli_epi16(v.a, kShift), mask),
            _mm256_and_si256(_mm256_srli_epi16(v.b, kShift), mask)};
  }
  template <int kShift>
  static ORTHRUS_INLINE Bytes merge(Bytes low, Bytes high) {
    return {_mm256_or_si256(low.a, _mm256_slli_epi16(high.a, kShift)),
            _mm256_or_si256(low.b, _mm256_slli_epi16(high.b, kShift))};
  }
  static ORTHRUS_INLINE Bytes lookup(const uint8_t* table, Bytes v) {
    const __m256i values = _mm256_broadcastsi128_si256(load_16(table));
    return {_mm256_shuffle_epi8(values, v.a), _mm256_shuffle_epi8(values, v.b)};
  }

  template <int kFactor>
  static ORTHRUS_INLINE Ints splat_times(int32_t v) {  // kFactor: a power of two
    const __m256i product = _mm256_slli_epi32(_mm256_set1_epi32(v), __builtin_ctz(kFactor));
    return {product, product};
  }

  static ORTHRUS_INLINE __m256i splat_quad(const int8_t* x) {
    int32_t quad;
    __builtin_memcpy(&quad, x, sizeof(quad));
    return _mm256_set1_epi32(quad);
  }
  static ORTHRUS_INLINE __m256i pairs(__m256i v) {  // sums of 16-bit pairs
    return _mm256_madd_epi16(v, _mm256_set1_epi16(1));
  }
  /// Keeps sums of integers as they are written: GCC would turn a chain into a tree, whose leaves
  /// do not fit the registers.
  static ORTHRUS_INLINE __m256i in_order(__m256i sum) {
    asm("" : "+x"(sum));
    return sum;
  }
  static ORTHRUS_INLINE Ints plus(Ints v, __m256i a, __m256i b) {
    return {in_order(_mm256_add_epi32(v.a, a)), in_order(_mm256_add_epi32(v.b, b))};
  }

  /// Codes below 64. VPMADDUBSW adds two products in 16 bits, and as many of its sums as cannot
  /// pass 32767 are added there.
  template <int kMostCode>
  struct Dot {
    static constexpr int kQuads = 32767 / (2 * 127 * kMostCode);
    static constexpr bool kSigned = false;
    using Sums = Bytes;
    using Weights = Bytes;
    static ORTHRUS_INLINE Sums start(Ints) {
      return {_mm256_setzero_si256(), _mm256_setzero_si256()};
    }
    static ORTHRUS_INLINE Ints total(Ints before, Sums sums) {
      return plus(before, pairs(sums.a), pairs(sums.b));
    }
    static ORTHRUS_INLINE Bytes weights(Bytes codes) { return codes; }
    static ORTHRUS_INLINE __m256i load(const int8_t* x) { return splat_quad(x); }
    static ORTHRUS_INLINE Sums add(Sums sums, Bytes codes, __m256i x) {
      return {in_order(_mm256_add_epi16(sums.a, _mm256_maddubs_epi16(codes.a, x))),
              in_order(_mm256_add_epi16(sums.b, _mm256_maddubs_epi16(codes.b, x)))};
    }
  };
};

/// Codes up to 255 with the zero point 128, as signed weights: |w| times the input with the sign
/// of w. Two products are at most 2 * 128 * 127.
template <>
struct Avx2::Dot<255> {
  struct Weights {
    Bytes values, magnitudes;
  };
  static constexpr int kQuads = 8;
  static constexpr bool kSigned = true;
  using Sums = Ints;
  static ORTHRUS_INLINE Sums start(Ints first) { return first; }
  static ORTHRUS_INLINE Ints total(Ints, Sums sums) { return sums; }
  static ORTHRUS_INLINE Weights weights(Bytes codes) {
    const __m256i zero = _mm256_set1_epi8(-128);
    const Bytes values = {_mm256_xor_si256(codes.a, zero), _mm256_xor_si256(codes.b, zero)};
    return {values, {_mm256_abs_epi8(values.a), _mm256_abs_epi8(values.b)}};
  }
  static ORTHRUS_INLINE __m256i load(const int8_t* x) { return splat_quad(x); }
  static ORTHRUS_INLINE Sums add(Sums sums, const Weights& w, __m256i x) {
    return plus(sums, pairs(_mm256_maddubs_epi16(w.magnitudes.a, _mm256_sign_epi8(x, w.values.a))),
                pairs(_mm256_maddubs_epi16(w.magnitudes.b, _mm256_sign_epi8(x, w.values.b))));
  }
};

}  // namespace

}  // namespace orthrus
