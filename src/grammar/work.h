#pragma once

#include <cstdint>

namespace orthrus::grammar {

/// Work done for a text from outside, as a count of operations of some nanoseconds each: a limit
/// on it refuses the same texts on every machine, whatever else that one does.
class Work {
 public:
  explicit Work(uint64_t limit) : limit_(limit) {}

  void set_limit(uint64_t limit) { limit_ = limit; }
  /// Whether it was within the limit, with all that was spent before.
  [[nodiscard]] bool spend(uint64_t operations) {
    spent_ += operations;
    return spent_ <= limit_;
  }
  bool exceeded() const { return spent_ > limit_; }
  uint64_t spent() const { return spent_; }

 private:
  uint64_t limit_;
  uint64_t spent_ = 0;
};

}  // namespace orthrus::grammar
