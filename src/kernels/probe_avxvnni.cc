#include <immintrin.h>

#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

constexpr int kChains = 10;  // 2 units * 5 cycles of latency
constexpr int kSteps = 16;

int32_t int8(int64_t rounds, int32_t x) {
  __m256i sum[kChains];
#pragma GCC unroll 10
  for (int j = 0; j < kChains; ++j) sum[j] = _mm256_set1_epi32(x + j);
  const __m256i a = _mm256_set1_epi32(x), b = _mm256_set1_epi8(3);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kChains; ++j) sum[j] = _mm256_dpbusd_avx_epi32(sum[j], a, b);
  }
  __m256i total = sum[0];
#pragma GCC unroll 10
  for (int j = 1; j < kChains; ++j) total = _mm256_xor_si256(total, sum[j]);
  return _mm_cvtsi128_si32(_mm256_castsi256_si128(total));
}

}  // namespace

const ProbeKernels kProbeAvxVnni = {kProbeAvx2.read, kProbeAvx2.fma, kProbeAvx2.fma_ops, int8,
                                    2.0 * 32 * kChains* kSteps};

}  // namespace orthrus
