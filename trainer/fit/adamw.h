#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace orthrus::train {

/// A trained tensor with the moments of its gradient.
struct Parameter {
  std::string name;   ///< in training checkpoints
  at::Tensor value;   ///< shared with the model; requires a gradient
  at::Tensor mean;    ///< of gradients
  at::Tensor square;  ///< undefined where Muon has the parameter
  /// Rows of each of the matrices that lie one below the other in it and that Muon takes one by
  /// one; empty: AdamW's.
  std::vector<int64_t> matrices{};
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// Scales all gradients so that their joint 2-norm is at most `limit` (0: no limit); returns the
/// norm before that.
double clip_gradients(const std::vector<Parameter>& parameters, double limit);

/// One step of AdamW (Loshchilov and Hutter, 2019); `step` counts from 1. The gradient is dropped.
void adamw_step(Parameter& parameter, const AdamWOptions& options, double learning_rate,
                int64_t step);

}  // namespace orthrus::train
