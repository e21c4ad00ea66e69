#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// Finds stop strings in text that arrives in pieces, also across their borders. Text that may still
/// become a stop string is held back. The earliest match wins (then the longest); the stop string
/// and all after it never leave. One per answer; not thread-safe.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);
  /// The text that may leave now. After stopped() every push returns "".
  std::string push(std::string_view text);
  /// What was held back, at the end of an answer that did not stop.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace orthrus
