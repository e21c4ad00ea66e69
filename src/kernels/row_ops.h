#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace orthrus {

/// Elementwise and reducing operations on one row of floats, the same code for any row and any
/// length (masked tails; no scalar libm). Reductions use a fixed tree of lanes. One exp
/// (vec_exp): relative error <= 2^-22 on [-87, 88], 0 below -104.
struct RowOps {
  /// out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* out);
  /// Rotates one head in place, half-split pairs (i, i + n/2): cos and sin [n/2].
  void (*rotate)(float* head, const float* cos, const float* sin, int64_t n);
  /// out[i] = silu(gate[i]) * up[i]
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* out);
  /// x[i] += y[i]
  void (*add)(float* x, const float* y, int64_t n);
  /// Index of the largest value, the lowest where equal. -1 where a value is NaN or +inf, or n ==
  /// 0.
  int64_t (*argmax)(const float* x, int64_t n);
  /// The largest value (-inf for n == 0; NaN ignored).
  float (*max)(const float* x, int64_t n);
  /// out[i] = exp((x[i] - shift) * scale); returns the sum of out. out may be x.
  float (*exp_sum)(const float* x, float shift, float scale, int64_t n, float* out);
};

const RowOps& row_ops(Isa isa);

}  // namespace orthrus
