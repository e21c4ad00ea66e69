#include <immintrin.h>

#include "decode/noise_block_impl.h"

namespace orthrus {
namespace {

/// Zero-masked forms with full masks: g++ 12 warns of its own headers' undefined sources in the
/// plain ones.
struct Avx512 {
  using Ints = __m512i;
  static constexpr int kLanes = 16;
  static Ints set(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static Ints count_from(uint32_t x) {
    return _mm512_add_epi32(
        set(x), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  }
  static Ints mul_even(Ints a, Ints b) { return _mm512_maskz_mul_epu32(0xFF, a, b); }
  static Ints high_to_low(Ints a) { return _mm512_maskz_srli_epi64(0xFF, a, 32); }
  static Ints low_to_high(Ints a) { return _mm512_maskz_slli_epi64(0xFF, a, 32); }
  static Ints join(Ints even, Ints odd) { return _mm512_mask_blend_epi32(0xAAAA, even, odd); }
  static Ints exclusive_or(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  static Ints max(Ints a, Ints b) { return _mm512_maskz_max_epu32(0xFFFF, a, b); }
  static void store(uint32_t* to, Ints a) { _mm512_storeu_si512(to, a); }
  static bool any_at_least(Ints a, uint32_t x) { return _mm512_cmpge_epu32_mask(a, set(x)) != 0; }
};

}  // namespace

bool noise_block_avx512(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                        NoiseBlock& out) {
  return noise_block_impl<Avx512>(key, first_group, threshold, out);
}

}  // namespace orthrus
