#pragma once

#include <chrono>
#include <cstdint>

namespace orthrus {

/// How many requests may decode together, by the use of the memory for keys and values (the
/// article's dynamic batch): a few at first; every `interval` more while there is room, half of
/// them and no new ones when it gets tight. Not thread-safe.
class BatchController {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int64_t first = 4;     ///< requests at the start
    int64_t most = 8;      ///< never more (`decode_batch_size`)
    double target = 0.75;  ///< utilisation below which the batch grows by one
    std::chrono::milliseconds interval{500};
  };
  /// Utilisation: blocks in use by requests / blocks of the budget.
  static constexpr double kSplitAbove = 0.85;
  static constexpr double kMergeBelow = 0.60;

  explicit BatchController(const Options& options);

  /// Requests that may decode in one step.
  int64_t batch() const { return batch_; }
  /// Whether waiting requests may begin.
  bool admits() const { return admits_; }
  /// What the engine sees.
  struct Observation {
    double utilisation = 0;
    int64_t waiting = 0;  ///< requests that have not begun
    int64_t answers = 0;  ///< that are being written, or wait for a place in the batch
    bool spare = true;    ///< the last step ended with memory left for every request in it
  };
  /// Acts once an interval.
  void observe(Clock::time_point now, const Observation& seen);

 private:
  Options options_;
  int64_t batch_;
  bool admits_ = true;
  Clock::time_point next_{};
};

}  // namespace orthrus
