#include "kernels/probe_kernel.h"
#include "kernels/vec_math_avx512.h"

namespace orthrus {
namespace {

// Enough chains to hide the latency of two units: 2 units * 5 cycles, rounded up.
constexpr int kChains = 12;
constexpr int kSteps = 16;  // a round's steps of every chain

uint32_t read(const std::byte* p, size_t bytes) {
  __m512i sum[4] = {};
  for (size_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      sum[j] = _mm512_xor_si512(sum[j], _mm512_load_si512(p + i + 64 * j));
    }
  }
  sum[0] = _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3]));
  return static_cast<uint32_t>(_mm512_reduce_or_epi32(sum[0]));
}

float fma(int64_t rounds, float x) {
  __m512 sum[kChains];
#pragma GCC unroll 12
  for (int j = 0; j < kChains; ++j) sum[j] = _mm512_set1_ps(x * static_cast<float>(j));
  const __m512 a = _mm512_set1_ps(x), b = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sum[j] = _mm512_fmadd_ps(sum[j], a, b);
  }
  __m512 total = sum[0];
#pragma GCC unroll 12
  for (int j = 1; j < kChains; ++j) total = _mm512_add_ps(total, sum[j]);
  return _mm512_cvtss_f32(total);
}

int32_t int8(int64_t rounds, int32_t x) {
  __m512i sum[kChains];
#pragma GCC unroll 12
  for (int j = 0; j < kChains; ++j) sum[j] = _mm512_set1_epi32(x + j);
  const __m512i a = _mm512_set1_epi32(x), b = _mm512_set1_epi8(3);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sum[j] = _mm512_dpbusd_epi32(sum[j], a, b);
  }
  __m512i total = sum[0];
#pragma GCC unroll 12
  for (int j = 1; j < kChains; ++j) total = _mm512_xor_si512(total, sum[j]);
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(total));
}

}  // namespace

constinit const ProbeKernels kProbeAvx512 = {read, fma, 2.0 * 16 * kChains* kSteps, int8,
                                             2.0 * 64 * kChains* kSteps};

}  // namespace orthrus
