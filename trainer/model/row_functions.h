#pragma once

#include <ATen/ATen.h>

namespace orthrus::train {

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension; x [..., n], weight [n]. One pass
/// forward and one back on the CPU in float32; gradients by both.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// Half-split pairs (i, i + head_dim / 2) rotated by the row's angles, as Hugging Face does.
/// x [rows, heads, head_dim]; cos and sin [rows, 1, head_dim / 2].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

/// silu(gate) * up; gate_up [rows, 2 n], gate first; returns [rows, n].
at::Tensor silu_mul(const at::Tensor& gate_up);

}  // namespace orthrus::train
