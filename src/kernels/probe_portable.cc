#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

using Floats = float __attribute__((vector_size(16)));
using Shorts = uint16_t __attribute__((vector_size(16)));
using Words = uint32_t __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
constexpr int kChains = 12;  // as many as 16 registers allow
constexpr int kSteps = 16;

uint32_t read(const std::byte* p, size_t bytes) {
  const Ints* v = reinterpret_cast<const Ints*>(p);
  Ints sum[4] = {};
  for (size_t i = 0; i < bytes / sizeof(Ints); i += 4) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sum[j] ^= v[i + j];
  }
  sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
  return static_cast<uint32_t>(sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3]);
}

float fma(int64_t rounds, float x) {
  Floats sum[kChains];
#pragma GCC unroll 12
  for (int j = 0; j < kChains; ++j) sum[j] = Floats{} + x * static_cast<float>(j);
  const Floats a = Floats{} + x, b = Floats{} + 0.5f;
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sum[j] = sum[j] * a + b;
  }
#pragma GCC unroll 12
  for (int j = 1; j < kChains; ++j) sum[0] += sum[j];
  return sum[0][0];
}

// 16-bit products, widened to 32 bits and added: what vectors without special instructions can do.
int32_t int8(int64_t rounds, int32_t x) {
  Ints sum[kChains];
#pragma GCC unroll 12
  for (int j = 0; j < kChains; ++j) sum[j] = Ints{} + (x + j);
  const Shorts b = Shorts{} + static_cast<uint16_t>(3);
  for (int64_t i = 0; i < rounds * kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) {  // as unsigned numbers: products and sums may wrap
      const Ints products = (Ints)((Shorts)sum[j] * b);
      sum[j] = (Ints)((Words)sum[j] + (Words)((products << 16) >> 16) + (Words)(products >> 16));
    }
  }
#pragma GCC unroll 12
  for (int j = 1; j < kChains; ++j) sum[0] ^= sum[j];
  return sum[0][0];
}

}  // namespace

constinit const ProbeKernels kProbePortable = {read, fma, 2.0 * 4 * kChains* kSteps, int8,
                                               2.0 * 8 * kChains* kSteps};

}  // namespace orthrus
