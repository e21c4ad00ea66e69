#include "trainer/fit/student.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace orthrus::train {

void StepStats::add(const StepStats& other) {
  loss += other.loss;
  blocks += other.blocks;
  tokens += other.tokens;
  accepted += other.accepted;
  agreed.resize(other.agreed.size());
  rows.resize(other.rows.size());
  for (size_t i = 0; i < other.rows.size(); ++i) {
    agreed[i] += other.agreed[i];
    rows[i] += other.rows[i];
  }
}

double StepStats::tokens_per_cycle() const {
  if (blocks == 0) return 0;
  return 1.0 + static_cast<double>(accepted) / static_cast<double>(blocks);
}

Student::Student(DualModel& model, const StudentOptions& options)
    : model_(model), options_(options) {
  const int64_t trained = options.block_size - (options.train_last ? 0 : 1);
  for (int64_t i = 0; i < trained; ++i) {
    position_weights_.push_back(options.position_decay > 0
                                    ? std::exp(-static_cast<double>(i) / options.position_decay)
                                    : 1);
  }
  const double sum = std::accumulate(position_weights_.begin(), position_weights_.end(), 0.0);
  for (double& weight : position_weights_) weight /= sum;

  const auto add = [&](const std::string& name, at::Tensor tensor) {
    if (!tensor.defined()) return;
    tensor.requires_grad_();
    parameters_.push_back(
        {name, tensor, at::zeros_like(tensor.detach()), at::zeros_like(tensor.detach())});
  };
  for (size_t i = 0; i < model.tensors().layers.size(); ++i) {
    const AttentionTensors& t = model.tensors().layers[i].diff;
    const std::string prefix = fmt::format("layers.{}.", i);
    add(prefix + "qkv", t.qkv);
    add(prefix + "o", t.o);
    add(prefix + "q_norm", t.q_norm);
    add(prefix + "k_norm", t.k_norm);
  }
  if (model.config().mask_token_id < 0) add("mask", model.tensors().mask);
  if (options.optimizer == Optimizer::kMuon) give_to_muon(parameters_, model.config());
}

int64_t Student::parameter_count() const {
  int64_t total = 0;
  for (const Parameter& p : parameters_) total += p.value.numel();
  return total;
}

/// order: row of the diffusion view [blocks * block_size] behind each row of the loss.
LossRows Student::loss_rows(const PlannedRow& planned, double scale,
                            std::vector<int64_t>& order) const {
  const int64_t size = options_.block_size;
  const auto position = [&](int64_t row) {
    return planned.blocks[static_cast<size_t>(row / size)].block.anchor + row % size;
  };
  for (size_t b = 0; b < planned.blocks.size(); ++b) {
    for (int64_t i = 0; i < planned.blocks[b].targets; ++i) {
      order.push_back(static_cast<int64_t>(b) * size + i);
    }
  }
  // By AR row, so that rows of overlapping blocks share its projection.
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return position(a) < position(b); });
  LossRows rows;
  for (const int64_t row : order) {
    rows.teacher_rows.push_back(position(row));
    rows.targets.push_back(planned.row.tokens[static_cast<size_t>(position(row) + 1)]);
    rows.weights.push_back(
        static_cast<float>(scale * position_weights_[static_cast<size_t>(row % size)]));
  }
  return rows;
}

StepStats Student::stats_of(const PlannedRow& planned, const std::vector<int64_t>& order,
                            const LossResult& result) const {
  const int64_t size = options_.block_size;
  StepStats stats;
  stats.loss = result.loss;
  stats.blocks = static_cast<int64_t>(planned.blocks.size());
  stats.tokens = stats.blocks * size;
  stats.agreed.resize(static_cast<size_t>(size));
  stats.rows.resize(static_cast<size_t>(size));
  std::vector<uint8_t> agrees(static_cast<size_t>(stats.tokens));
  for (size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<size_t>(order[i] % size);
    ++stats.rows[at];
    stats.agreed[at] += result.agrees[i];
    agrees[static_cast<size_t>(order[i])] = result.agrees[i];
  }
  for (int64_t b = 0; b < stats.blocks; ++b) {
    for (int64_t i = 0; i + 1 < size && agrees[static_cast<size_t>(b * size + i)]; ++i) {
      ++stats.accepted;
    }
  }
  return stats;
}

StepStats Student::accumulate(const PlannedRow& planned, double scale) {
  ORTHRUS_CHECK(!planned.blocks.empty());
  std::vector<Block> blocks;
  for (const TrainBlock& b : planned.blocks) blocks.push_back(b.block);
  const ArPass ar = model_.forward_ar(planned.row);
  const at::Tensor hidden =
      model_.forward_diffusion(planned.row, ar, blocks, options_.block_size).flatten(0, 1);
  std::vector<int64_t> order;
  LossRows rows = loss_rows(planned, scale, order);
  const at::Tensor index = at::tensor(order, at::kLong).to(hidden.device());
  const at::Tensor selected = hidden.index_select(0, index);
  rows.student = selected.detach();
  rows.teacher = ar.hidden;
  const LossResult result =
      distillation_loss(rows, model_.lm_head(), model_.precision(), options_.loss);
  selected.backward(result.gradient);
  return stats_of(planned, order, result);
}

double Student::update(double learning_rate, int64_t step) {
  const double norm = clip_gradients(parameters_, options_.clip);
  if (!std::isfinite(norm)) return norm;
  for (Parameter& p : parameters_) {
    if (p.matrices.empty()) {
      adamw_step(p, options_.adamw, learning_rate, step);
    } else {
      muon_step(p, options_.muon, learning_rate);
    }
  }
  return norm;
}

}  // namespace orthrus::train
