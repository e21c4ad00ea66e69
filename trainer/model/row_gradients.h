#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace orthrus::train {

/// Backward passes of the engine's operations on one row of floats (kernels/row_ops.h).
struct RowGradients {
  /// dx of y = x / sqrt(mean(x^2) + eps) * weight, from dy [n].
  void (*rms_norm)(const float* x, const float* weight, const float* dy, float eps, int64_t n,
                   float* dx);
  /// dgate and dup of y = silu(gate) * up, from dy [n].
  void (*silu_mul)(const float* gate, const float* up, const float* dy, int64_t n, float* dgate,
                   float* dup);
};

const RowGradients& row_gradients(Isa isa);

}  // namespace orthrus::train
