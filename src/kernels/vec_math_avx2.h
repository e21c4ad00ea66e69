#pragma once

#include <immintrin.h>

#include <cstdint>

namespace orthrus {
namespace {

/// 16 floats in two registers; see VecPortable for what the members mean.
struct VecAvx2 {
  static constexpr int kAccumulators = 6;
  static constexpr int kMaxQueries = 6;

  __m256 lo, hi;

  static VecAvx2 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static VecAvx2 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static VecAvx2 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  static VecAvx2 load_first(const float* p, int n) {
    return {_mm256_maskload_ps(p, before(n, 0)), _mm256_maskload_ps(p + 8, before(n, 8))};
  }
  void store_first(float* p, int n) const {
    _mm256_maskstore_ps(p, before(n, 0), lo);
    _mm256_maskstore_ps(p + 8, before(n, 8), hi);
  }
  static VecAvx2 load_i8(const void* p) {
    const __m128i codes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
  }
  static void load_bf16_pairs(const void* p, VecAvx2* first, VecAvx2* second) {
    const __m256i* pairs = static_cast<const __m256i*>(p);
    const __m256i high = _mm256_set1_epi32(-65536);
    const __m256i a = _mm256_loadu_si256(pairs);
    const __m256i b = _mm256_loadu_si256(pairs + 1);
    *first = {widen(a), widen(b)};
    *second = {_mm256_castsi256_ps(_mm256_and_si256(a, high)),
               _mm256_castsi256_ps(_mm256_and_si256(b, high))};
  }

  friend VecAvx2 operator+(VecAvx2 x, VecAvx2 y) {
    return {_mm256_add_ps(x.lo, y.lo), _mm256_add_ps(x.hi, y.hi)};
  }
  friend VecAvx2 operator-(VecAvx2 x, VecAvx2 y) {
    return {_mm256_sub_ps(x.lo, y.lo), _mm256_sub_ps(x.hi, y.hi)};
  }
  friend VecAvx2 operator*(VecAvx2 x, VecAvx2 y) {
    return {_mm256_mul_ps(x.lo, y.lo), _mm256_mul_ps(x.hi, y.hi)};
  }
  friend VecAvx2 operator/(VecAvx2 x, VecAvx2 y) {
    return {_mm256_div_ps(x.lo, y.lo), _mm256_div_ps(x.hi, y.hi)};
  }
  friend VecAvx2 mul_add(VecAvx2 x, VecAvx2 y, VecAvx2 z) {
    return {_mm256_fmadd_ps(x.lo, y.lo, z.lo), _mm256_fmadd_ps(x.hi, y.hi, z.hi)};
  }
  friend VecAvx2 max(VecAvx2 x, VecAvx2 y) {
    return {_mm256_max_ps(x.lo, y.lo), _mm256_max_ps(x.hi, y.hi)};
  }
  friend VecAvx2 min(VecAvx2 x, VecAvx2 y) {
    return {_mm256_min_ps(x.lo, y.lo), _mm256_min_ps(x.hi, y.hi)};
  }
  static VecAvx2 select_first(int n, VecAvx2 x, VecAvx2 y) {
    return {_mm256_blendv_ps(y.lo, x.lo, _mm256_castsi256_ps(before(n, 0))),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_castsi256_ps(before(n, 8)))};
  }
  friend uint32_t less_mask(VecAvx2 x, VecAvx2 y) {
    return mask(_mm256_cmp_ps(x.lo, y.lo, _CMP_LT_OQ), _mm256_cmp_ps(x.hi, y.hi, _CMP_LT_OQ));
  }
  friend uint32_t equal_mask(VecAvx2 x, VecAvx2 y) {
    return mask(_mm256_cmp_ps(x.lo, y.lo, _CMP_EQ_OQ), _mm256_cmp_ps(x.hi, y.hi, _CMP_EQ_OQ));
  }
  static VecAvx2 power_of_two(VecAvx2 biased) { return {power(biased.lo), power(biased.hi)}; }

 private:
  static __m256i before(int n, int offset) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - offset), lanes);
  }
  static __m256 widen(__m256i bits) { return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)); }
  static uint32_t mask(__m256 lo, __m256 hi) {
    return static_cast<uint32_t>(_mm256_movemask_ps(lo) | _mm256_movemask_ps(hi) << 8);
  }
  static __m256 power(__m256 biased) {
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(biased), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
  }
};

}  // namespace
}  // namespace orthrus
