#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/shard.h"
#include "trainer/model/packed_row.h"

namespace orthrus::train {

/// A block to train on.
struct TrainBlock {
  Block block;
  int64_t targets =
      0;  ///< rows of the block, from the first, whose proposed token is in the answer
};

/// A row of a training step.
struct PlannedRow {
  PackedRow row;
  std::vector<TrainBlock> blocks;  ///< in order of their anchors
};

/// Where the plan stands. All that a checkpoint needs: the order of an epoch and the anchors are
/// pure functions of seed, epoch and place.
struct PlanState {
  int64_t epoch = 0;
  int64_t next = 0;  ///< documents of this epoch already taken
};

struct RowPlanOptions {
  int64_t row_tokens = 384;
  int64_t row_blocks = 48;  ///< at most; fewer where the answers are shorter
  int64_t block_size = 8;
  bool train_last = false;  ///< also the last row of a block, which two-pass cycles do not use
  uint64_t seed = 0;
};

/// Packs documents into rows and draws anchors. Each epoch takes every document once in a new
/// order; rows are filled as long as the next document fits; longer documents are cut. Anchors are
/// answer tokens that have a successor, drawn without repeats inside a row.
class RowPlan {
 public:
  /// `data` must outlive this. Error(kInput) where no document has an anchor.
  RowPlan(const Shard& data, const RowPlanOptions& options);

  const PlanState& state() const { return state_; }
  void restore(const PlanState& state);
  PlannedRow next();

 private:
  void begin_epoch(int64_t epoch);
  int64_t length(size_t document) const;

  const Shard& data_;
  RowPlanOptions options_;
  std::vector<uint32_t> usable_;  // documents with anchors
  std::vector<uint32_t> order_;   // of this epoch
  PlanState state_;
};

}  // namespace orthrus::train
