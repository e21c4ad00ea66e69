#pragma once

#include <cstdint>
#include <span>

#include "decode/cost_model.h"

namespace orthrus {

/// How many rows of prompts a pass may carry beside answers that are being written. Every step of
/// the answers earns the prompts a share of its time, as the cost model sees it; their rows spend
/// it. What nobody spends is kept for a few steps, so that a short prompt after a quiet spell is
/// read at once, while a long one stretches the steps by the share and no more, in the mean. A
/// prompt that shall not wait for others may spend as much even where they have left less, and all
/// pay it back. Not thread-safe.
class PrefillPace {
 public:
  explicit PrefillPace(const CostModel& cost) : cost_(cost) {}

  struct Terms {
    double share = 0;     ///< of the time of the answers' rows, for prompts
    bool borrow = false;  ///< the first prompt may
  };
  /// What the next pass may read of a prompt, and where.
  struct Prompt {
    int64_t rows;
    int64_t position;     ///< tokens in the cache before them
    bool scored = false;  ///< whether all rows want logits, not none
  };
  /// Rows for the prompts, which take them in this order, at most `most`. `decoding`: the pass so
  /// far; no rows: prompts have a pass of their own between the steps of the answers.
  int64_t rows(const PassShape& decoding, std::span<const Prompt> prompts, const Terms& terms,
               int64_t most);

  /// Whether enough is saved for a pass of prompts alone, which reads all weights once more.
  bool affords_own_pass() const;

 private:
  const CostModel& cost_;
  double earned_ = 0;  // seconds, by the last step of the answers
  double credit_ = 0;  // steps whose share is not spent; below zero: a debt
};

}  // namespace orthrus
