#pragma once

// GCC 12 takes the deliberately undefined registers of its own header for a mistake of ours.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

namespace orthrus {
namespace {

/// 16 floats in one register; see VecPortable for what the members mean.
struct VecAvx512 {
  static constexpr int kAccumulators = 24;
  static constexpr int kMaxQueries = 12;

  __m512 v;

  static VecAvx512 zero() { return {_mm512_setzero_ps()}; }
  static VecAvx512 broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static VecAvx512 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  static VecAvx512 load_first(const float* p, int n) {
    return {_mm512_maskz_loadu_ps(first(n), p)};
  }
  void store_first(float* p, int n) const { _mm512_mask_storeu_ps(p, first(n), v); }
  static VecAvx512 load_i8(const void* p) {
    __m128i codes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))};
  }
  static void load_bf16_pairs(const void* p, VecAvx512* first, VecAvx512* second) {
    __m512i bits = _mm512_loadu_si512(p);
    first->v = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    second->v = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-65536)));
  }

  friend VecAvx512 operator+(VecAvx512 x, VecAvx512 y) { return {_mm512_add_ps(x.v, y.v)}; }
  friend VecAvx512 operator-(VecAvx512 x, VecAvx512 y) { return {_mm512_sub_ps(x.v, y.v)}; }
  friend VecAvx512 operator*(VecAvx512 x, VecAvx512 y) { return {_mm512_mul_ps(x.v, y.v)}; }
  friend VecAvx512 operator/(VecAvx512 x, VecAvx512 y) { return {_mm512_div_ps(x.v, y.v)}; }
  friend VecAvx512 mul_add(VecAvx512 x, VecAvx512 y, VecAvx512 z) {
    return {_mm512_fmadd_ps(x.v, y.v, z.v)};
  }
  friend VecAvx512 max(VecAvx512 x, VecAvx512 y) { return {_mm512_max_ps(x.v, y.v)}; }
  friend VecAvx512 min(VecAvx512 x, VecAvx512 y) { return {_mm512_min_ps(x.v, y.v)}; }
  static VecAvx512 select_first(int n, VecAvx512 x, VecAvx512 y) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return {_mm512_mask_blend_ps(_mm512_cmplt_epi32_mask(lanes, _mm512_set1_epi32(n)), y.v, x.v)};
  }
  friend uint32_t less_mask(VecAvx512 x, VecAvx512 y) {
    return _mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ);
  }
  friend uint32_t equal_mask(VecAvx512 x, VecAvx512 y) {
    return _mm512_cmp_ps_mask(x.v, y.v, _CMP_EQ_OQ);
  }
  static VecAvx512 power_of_two(VecAvx512 biased) {
    __m512i bits = _mm512_add_epi32(_mm512_castps_si512(biased.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 23))};
  }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
};

}  // namespace
}  // namespace orthrus
