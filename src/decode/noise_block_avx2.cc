#include <immintrin.h>

#include "decode/noise_block_impl.h"

namespace orthrus {
namespace {

struct Avx2 {
  using Ints = __m256i;
  static constexpr int kLanes = 8;
  static Ints set(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Ints count_from(uint32_t x) {
    return _mm256_add_epi32(set(x), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Ints mul_even(Ints a, Ints b) { return _mm256_mul_epu32(a, b); }
  static Ints high_to_low(Ints a) { return _mm256_srli_epi64(a, 32); }
  static Ints low_to_high(Ints a) { return _mm256_slli_epi64(a, 32); }
  static Ints join(Ints even, Ints odd) { return _mm256_blend_epi32(even, odd, 0xAA); }
  static Ints exclusive_or(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
  static Ints max(Ints a, Ints b) { return _mm256_max_epu32(a, b); }
  static void store(uint32_t* to, Ints a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
  }
  static bool any_at_least(Ints a, uint32_t x) {
    const Ints reached = _mm256_cmpeq_epi32(_mm256_max_epu32(a, set(x)), a);
    return _mm256_movemask_epi8(reached) != 0;
  }
};

}  // namespace

bool noise_block_avx2(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                      NoiseBlock& out) {
  return noise_block_impl<Avx2>(key, first_group, threshold, out);
}

}  // namespace orthrus
