#include "trainer/fit/muon.h"

#include <algorithm>
#include <cmath>

namespace orthrus::train {

at::Tensor orthogonalized(const at::Tensor& gradient) {
  constexpr int kSteps = 5;
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const bool tall = gradient.size(0) > gradient.size(1);
  at::Tensor x = tall ? gradient.t() : gradient;
  x = x / (x.norm() + 1e-7);
  for (int i = 0; i < kSteps; ++i) {
    const at::Tensor square = at::mm(x, x.t());
    const at::Tensor polynomial = at::addmm(square, square, square, kB, kC);
    x = at::addmm(x, polynomial, x, kA);
  }
  return tall ? x.t() : x;
}

void give_to_muon(std::vector<Parameter>& parameters, const ModelConfig& config) {
  const int64_t q = config.num_heads * config.head_dim, kv = config.num_kv_heads * config.head_dim;
  for (Parameter& p : parameters) {
    if (p.name.ends_with(".qkv")) p.matrices = {q, kv, kv};
    if (p.name.ends_with(".o")) p.matrices = {p.value.size(0)};
    if (!p.matrices.empty()) p.square = at::Tensor();
  }
}

void muon_step(Parameter& p, const MuonOptions& options, double learning_rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = p.value.grad();
  if (!gradient.defined()) return;
  p.mean.lerp_(gradient, 1 - options.momentum);
  const at::Tensor ahead = gradient.lerp(p.mean, options.momentum);
  if (options.weight_decay > 0) p.value.mul_(1 - learning_rate * options.weight_decay);
  int64_t row = 0;
  for (const int64_t rows : p.matrices) {
    const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(rows, p.value.size(1))));
    p.value.detach()
        .narrow(0, row, rows)
        .add_(orthogonalized(ahead.narrow(0, row, rows)), -learning_rate * scale);
    row += rows;
  }
  p.value.mutable_grad() = at::Tensor();
}

}  // namespace orthrus::train
