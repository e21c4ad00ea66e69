#pragma once

#include <cstdint>
#include <span>

#include "decode/cost_model.h"

namespace orthrus {

/// How many rows of prompts a pass may carry beside answers that are being written. Every step of
/// the answers earns the prompts a share of its time, as the cost model sees it; their rows spend
/// it. What nobody spends is kept for a few steps, so that a short prompt after a quiet spell is
/// read at once, while a long one stretches the steps by the share and no more. Not thread-safe.
class PrefillPace {
 public:
  explicit PrefillPace(const CostModel& cost) : cost_(cost) {}

  /// What is still to be read of a prompt, and where.
  struct Prompt {
    int64_t rows;
    int64_t position;  ///< tokens in the cache before them
  };
  /// Rows for the prompts, which take them in this order, at most `most`. `decoding`: the pass so
  /// far; no rows: prompts have a pass of their own between the steps of the answers. `share`: of
  /// the time of the answers' rows, for prompts.
  int64_t rows(const PassShape& decoding, std::span<const Prompt> prompts, double share,
               int64_t most);

 private:
  const CostModel& cost_;
  double credit_ = 0;  // seconds
};

}  // namespace orthrus
