#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "formats/model_config.h"
#include "trainer/fit/adamw.h"

namespace orthrus::train {

struct MuonOptions {
  double momentum = 0.95;
  double weight_decay = 0;
};

/// A matrix near the closest one with orthonormal rows or columns: all its singular values end
/// between about 0.7 and 1.2. Five steps of the quintic Newton-Schulz iteration with the
/// coefficients of Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).
/// gradient [rows, cols].
at::Tensor orthogonalized(const at::Tensor& gradient);

/// Leaves the projections of the diffusion view to Muon: q, k and v each by itself, and o. The
/// other parameters stay with AdamW.
void give_to_muon(std::vector<Parameter>& parameters, const ModelConfig& config);

/// One step of Muon with Nesterov's momentum, scaled by 0.2 sqrt(max(rows, cols)) so that learning
/// rates and weight decay of AdamW carry over (Liu et al., "Muon is scalable for LLM training",
/// 2025, section 2.2). The gradient is dropped.
void muon_step(Parameter& parameter, const MuonOptions& options, double learning_rate);

}  // namespace orthrus::train
