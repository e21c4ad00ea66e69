#pragma once

#include <cstddef>
#include <cstdint>

namespace orthrus {

/// Loops that reach an instruction set's limits. Each returns a value that depends on all its work.
struct ProbeKernels {
  /// Reads `bytes` bytes (a multiple of 1024) at p, aligned to 64.
  uint32_t (*read)(const std::byte* p, size_t bytes);
  /// Independent chains of f32 multiply-adds; `rounds` rounds of `fma_ops` operations.
  float (*fma)(int64_t rounds, float x);
  double fma_ops;
  /// The same for int8 products added into int32.
  int32_t (*int8)(int64_t rounds, int32_t x);
  double int8_ops;
  /// The same for products of bf16 pairs added into f32; null where bf16 weights compute in f32.
  float (*bf16)(int64_t rounds, float x) = nullptr;
  double bf16_ops = 0;
};

extern const ProbeKernels kProbePortable;
extern const ProbeKernels kProbeAvx2;
extern const ProbeKernels kProbeAvxVnni;
extern const ProbeKernels kProbeAvx512;
const ProbeKernels& avx512bf16_probe();
extern const ProbeKernels kProbeNeon;

}  // namespace orthrus
