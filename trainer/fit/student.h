#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/row_plan.h"
#include "trainer/fit/adamw.h"
#include "trainer/fit/distillation_loss.h"
#include "trainer/fit/muon.h"
#include "trainer/model/dual_model.h"

namespace orthrus::train {

/// kMuon: for the projections; AdamW for what is no matrix.
enum class Optimizer : uint8_t { kAdamW, kMuon };

struct StudentOptions {
  int64_t block_size = 8;
  bool train_last = false;
  /// Weight of row i of a block: exp(-i / position_decay), then scaled to a sum of 1 over a whole
  /// block. Early rows count more, since acceptance is a prefix. 0: all alike.
  double position_decay = 5;
  LossOptions loss;
  Optimizer optimizer = Optimizer::kAdamW;
  AdamWOptions adamw;
  MuonOptions muon;
  double clip = 1.0;
};

/// What rows of a step have shown.
struct StepStats {
  double loss = 0;  ///< weighted sum
  int64_t blocks = 0;
  int64_t tokens = 0;                 ///< rows of the diffusion view
  std::vector<int64_t> agreed, rows;  ///< a block position: rows that choose as the AR view, of all
  int64_t accepted = 0;               ///< drafts before the first disagreement, summed over blocks

  void add(const StepStats& other);
  /// Of two-pass cycles that start at the anchors drawn.
  double tokens_per_cycle() const;
};

/// The trained part of a model: gradients of packed rows, then a step of the optimiser.
class Student {
 public:
  /// Makes the tensors of the diffusion view require gradients. `model` must outlive this.
  Student(DualModel& model, const StudentOptions& options);

  std::vector<Parameter>& parameters() { return parameters_; }
  int64_t parameter_count() const;

  /// Teacher once, the blocks beside it, the loss and its gradients, which are added to those there
  /// are. scale: weight of a block, 1 / blocks of the step.
  StepStats accumulate(const PlannedRow& row, double scale);
  /// Clips and steps; returns the norm of the gradients before clipping. Where that is not finite,
  /// nothing is changed.
  double update(double learning_rate, int64_t step);

 private:
  LossRows loss_rows(const PlannedRow& row, double scale, std::vector<int64_t>& order) const;
  StepStats stats_of(const PlannedRow& row, const std::vector<int64_t>& order,
                     const LossResult& result) const;

  DualModel& model_;
  StudentOptions options_;
  std::vector<double> position_weights_;
  std::vector<Parameter> parameters_;
};

}  // namespace orthrus::train
