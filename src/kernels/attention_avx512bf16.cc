// AVX-512 with BF16: as AVX-512, but keys and values in bf16 are multiplied in pairs.

#include "kernels/attention_impl.h"
#include "kernels/vec_math_avx512.h"

namespace orthrus {
namespace {

/// Products of pairs of bf16: 32 a lane and instruction, rounded as the instruction does
/// (docs/numerics.md).
struct PairDotAvx512 {
  using Pairs = __m512i;

  static Pairs load(const std::byte* p) { return _mm512_loadu_si512(p); }
  /// The first of every pair, with 0 beside it.
  static Pairs load_first(const std::byte* p) {
    return _mm512_and_si512(load(p), _mm512_set1_epi32(0xffff));
  }
  static Pairs broadcast(const float* pair) {
    int32_t bits;
    __builtin_memcpy(&bits, pair, sizeof(bits));
    return _mm512_set1_epi32(bits);
  }
  static VecAvx512 add(VecAvx512 sum, Pairs a, Pairs b) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b))};
  }
  /// e^x for x <= 0 with a relative error of at most 2^-17, for weights that are rounded to 2^-9
  /// then: half the steps of vec_exp. 0 below -87, NaN stays NaN. 2^f for |f| <= 1/2 is a
  /// polynomial, a near-minimax fit of our own with p(0) = 1.
  static VecAvx512 exp(VecAvx512 x) {
    const __mmask16 kept = _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
    const __m512 t = _mm512_mul_ps(x.v, _mm512_set1_ps(1.44269504f));
    const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(t, n);
    __m512 p = _mm512_set1_ps(0x1.3a02ccp-7f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.c9fc46p-5f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.ec0378p-3f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.62e12cp-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return {_mm512_maskz_scalef_ps(kept, p, n)};
  }
  /// Rounds to nearest even and writes 16 bf16; returns what they are.
  static VecAvx512 round(VecAvx512 x, float* out) {
    const auto bits = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bits);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
};

}  // namespace

constinit const AttentionKernels kAttentionAvx512Bf16 =
    AttentionImpl<VecAvx512, PairDotAvx512>::table();

}  // namespace orthrus
