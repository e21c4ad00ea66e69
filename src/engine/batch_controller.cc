#include "engine/batch_controller.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus {

BatchController::BatchController(const Options& options)
    : options_(options), batch_(std::min(options.first, options.most)) {
  ORTHRUS_CHECK(options.first >= 1 && options.most >= 1);
}

void BatchController::observe(Clock::time_point now, double utilisation, int64_t waiting,
                              bool spare) {
  // Memory that runs out does not wait for the interval to end.
  if (utilisation > kSplitAbove) admits_ = false;
  if (now < next_) return;
  next_ = now + options_.interval;
  if (utilisation > kSplitAbove) {
    batch_ = std::max<int64_t>(1, batch_ / 2);
    return;
  }
  if (utilisation < kMergeBelow) {
    admits_ = true;
    batch_ = std::min(options_.most, batch_ + waiting);
  }
  if (utilisation < options_.target && spare) batch_ = std::min(options_.most, batch_ + 1);
}

}  // namespace orthrus
