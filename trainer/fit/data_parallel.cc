#include "trainer/fit/data_parallel.h"

#include <numeric>

namespace orthrus::train {

void share_state(const ProcessGroup& group, TrainingState& state,
                 const std::vector<Parameter>& parameters) {
  if (group.size() == 1) return;
  // Counts far below 2^53: exact in doubles.
  std::vector<double> values{static_cast<double>(state.step), static_cast<double>(state.plan.epoch),
                             static_cast<double>(state.plan.next),
                             static_cast<double>(state.tokens), state.seconds};
  group.broadcast(values);
  const auto whole = [&](size_t i) { return static_cast<int64_t>(values[i]); };
  state = {whole(0), {whole(1), whole(2)}, whole(3), values[4]};
  for (const Parameter& p : parameters) {
    for (const at::Tensor& tensor : {p.value.detach(), p.mean, p.square}) {
      if (tensor.defined()) group.broadcast(tensor);
    }
  }
}

void sum_stats(const ProcessGroup& group, StepStats& stats, std::vector<double>& losses) {
  std::vector<double> values = losses;
  const auto each_count = [&](const auto& visit) {
    visit(stats.blocks), visit(stats.tokens), visit(stats.accepted);
    for (int64_t& count : stats.agreed) visit(count);
    for (int64_t& count : stats.rows) visit(count);
  };
  each_count([&](int64_t& count) { values.push_back(static_cast<double>(count)); });
  group.sum(values);
  size_t next = losses.size();
  each_count([&](int64_t& count) { count = static_cast<int64_t>(values[next++]); });
  losses.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(losses.size()));
  stats.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
}

void sum_gradients(const ProcessGroup& group, const std::vector<Parameter>& parameters) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const Parameter& p : parameters) {
    at::Tensor& gradient = p.value.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(p.value);
    gradient = gradient.contiguous();
    group.sum(gradient);
  }
}

}  // namespace orthrus::train
