#include <immintrin.h>

#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

// Enough chains to hide the latency of two units: 2 units * 6 cycles, and some more.
constexpr int kChains = 16;
constexpr int kSteps = 16;  // a round's steps of every chain

float bf16(int64_t rounds, float x) {
  __m512 sum[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) sum[j] = _mm512_set1_ps(x * static_cast<float>(j));
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(x), _mm512_set1_ps(x));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.25f), _mm512_set1_ps(-0.25f));
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) sum[j] = _mm512_dpbf16_ps(sum[j], a, b);
  }
  __m512 total = sum[0];
#pragma GCC unroll 16
  for (int j = 1; j < kChains; ++j) total = _mm512_add_ps(total, sum[j]);
  return _mm512_cvtss_f32(total);
}

}  // namespace

// All else is AVX-512's.
const ProbeKernels& avx512bf16_probe() {
  static const ProbeKernels kKernels = [] {
    ProbeKernels kernels = kProbeAvx512;
    kernels.bf16 = bf16;
    kernels.bf16_ops = 2.0 * 32 * kChains * kSteps;
    return kernels;
  }();
  return kKernels;
}

}  // namespace orthrus
