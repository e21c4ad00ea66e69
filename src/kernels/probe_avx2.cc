#include <immintrin.h>

#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

constexpr int kChains = 10;  // 2 units * 5 cycles of latency
constexpr int kSteps = 16;

uint32_t read(const std::byte* p, size_t bytes) {
  const __m256i* v = reinterpret_cast<const __m256i*>(p);
  __m256i sum[4] = {};
  for (size_t i = 0; i < bytes / 32; i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      sum[j] = _mm256_xor_si256(sum[j], _mm256_load_si256(v + i + j));
    }
  }
  sum[0] = _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return static_cast<uint32_t>(_mm256_movemask_epi8(sum[0]));
}

float fma(int64_t rounds, float x) {
  __m256 sum[kChains];
#pragma GCC unroll 10
  for (int j = 0; j < kChains; ++j) sum[j] = _mm256_set1_ps(x * static_cast<float>(j));
  const __m256 a = _mm256_set1_ps(x), b = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kChains; ++j) sum[j] = _mm256_fmadd_ps(sum[j], a, b);
  }
  __m256 total = sum[0];
#pragma GCC unroll 10
  for (int j = 1; j < kChains; ++j) total = _mm256_add_ps(total, sum[j]);
  return _mm256_cvtss_f32(total);
}

// VPMADDUBSW, widened with VPMADDWD and added: what 8-bit products take without VNNI. (The
// matmul takes one step more for 8-bit weights, and fewer for narrower ones.) The products start
// from the sums, so that none of them can be moved out of the loop.
int32_t int8(int64_t rounds, int32_t x) {
  __m256i sum[kChains];
#pragma GCC unroll 10
  for (int j = 0; j < kChains; ++j) sum[j] = _mm256_set1_epi32(x + j);
  const __m256i b = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kChains; ++j) {
      const __m256i products = _mm256_maddubs_epi16(sum[j], b);
      sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(products, ones));
    }
  }
  __m256i total = sum[0];
#pragma GCC unroll 10
  for (int j = 1; j < kChains; ++j) total = _mm256_xor_si256(total, sum[j]);
  return _mm_cvtsi128_si32(_mm256_castsi256_si128(total));
}

}  // namespace

constinit const ProbeKernels kProbeAvx2 = {read, fma, 2.0 * 8 * kChains* kSteps, int8,
                                           2.0 * 32 * kChains* kSteps};

}  // namespace orthrus
