#include "engine/batch_controller.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus {

BatchController::BatchController(const Options& options)
    : options_(options), batch_(std::min(options.first, options.most)) {
  ORTHRUS_CHECK(options.first >= 1 && options.most >= 1);
}

void BatchController::observe(Clock::time_point now, const Observation& seen) {
  // Memory that runs out does not wait for the interval to end.
  if (seen.utilisation > kSplitAbove) admits_ = false;
  if (now < next_) return;
  next_ = now + options_.interval;
  if (seen.utilisation > kSplitAbove) {
    // Answers that lost their place keep their blocks: until the others have made room by ending, a
    // smaller batch would only make them slower.
    if (seen.answers <= batch_) batch_ = std::max<int64_t>(1, batch_ / 2);
    return;
  }
  if (seen.utilisation < kMergeBelow) {
    admits_ = true;
    const int64_t queue = seen.waiting + std::max<int64_t>(0, seen.answers - batch_);
    batch_ = std::min(options_.most, batch_ + queue);
  }
  if (seen.utilisation < options_.target && seen.spare) {
    batch_ = std::min(options_.most, batch_ + 1);
  }
}

}  // namespace orthrus
