#include <arm_neon.h>

#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

constexpr int kChains = 16;  // 4 units * 4 cycles of latency, on the widest cores
constexpr int kSteps = 16;

uint32_t read(const std::byte* p, size_t bytes) {
  const auto* words = reinterpret_cast<const uint32_t*>(p);
  uint32x4_t sum[4] = {};
  for (size_t i = 0; i < bytes / 4; i += 16) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sum[j] = veorq_u32(sum[j], vld1q_u32(words + i + 4 * j));
  }
  return vaddvq_u32(veorq_u32(veorq_u32(sum[0], sum[1]), veorq_u32(sum[2], sum[3])));
}

float fma(int64_t rounds, float x) {
  float32x4_t sum[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) sum[j] = vdupq_n_f32(x * static_cast<float>(j));
  const float32x4_t a = vdupq_n_f32(x), b = vdupq_n_f32(0.5f);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) sum[j] = vfmaq_f32(sum[j], a, b);
  }
  float32x4_t total = sum[0];
#pragma GCC unroll 16
  for (int j = 1; j < kChains; ++j) total = vaddq_f32(total, sum[j]);
  return vgetq_lane_f32(total, 0);
}

int32_t int8(int64_t rounds, int32_t x) {
  int32x4_t sum[kChains];
#pragma GCC unroll 16
  for (int j = 0; j < kChains; ++j) sum[j] = vdupq_n_s32(x + j);
  const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(x)), b = vdupq_n_s8(3);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) sum[j] = vdotq_s32(sum[j], a, b);
  }
  int32x4_t total = sum[0];
#pragma GCC unroll 16
  for (int j = 1; j < kChains; ++j) total = veorq_s32(total, sum[j]);
  return vgetq_lane_s32(total, 0);
}

}  // namespace

constinit const ProbeKernels kProbeNeon = {read, fma, 2.0 * 4 * kChains* kSteps, int8,
                                           2.0 * 16 * kChains* kSteps};

}  // namespace orthrus
