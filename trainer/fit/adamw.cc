#include "trainer/fit/adamw.h"

#include <cmath>

namespace orthrus::train {

double clip_gradients(const std::vector<Parameter>& parameters, double limit) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (const Parameter& p : parameters) {
    if (p.value.grad().defined()) sum += std::pow(p.value.grad().norm().item<double>(), 2);
  }
  const double norm = std::sqrt(sum);
  if (limit > 0 && norm > limit) {
    for (const Parameter& p : parameters) {
      if (p.value.grad().defined()) p.value.grad().mul_(limit / norm);
    }
  }
  return norm;
}

void adamw_step(Parameter& p, const AdamWOptions& options, double learning_rate, int64_t step) {
  const at::NoGradGuard no_grad;
  const double mean_scale = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double square_scale = 1 - std::pow(options.beta2, static_cast<double>(step));
  const at::Tensor gradient = p.value.grad();
  if (!gradient.defined()) return;
  if (options.weight_decay > 0) p.value.mul_(1 - learning_rate * options.weight_decay);
  p.mean.mul_(options.beta1).add_(gradient, 1 - options.beta1);
  p.square.mul_(options.beta2).addcmul_(gradient, gradient, 1 - options.beta2);
  const at::Tensor divisor = (p.square / square_scale).sqrt_().add_(options.epsilon);
  p.value.addcdiv_(p.mean, divisor, -learning_rate / mean_scale);
  p.value.mutable_grad() = at::Tensor();
}

}  // namespace orthrus::train
