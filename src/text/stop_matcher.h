#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// Finds stop strings in text that arrives in pieces, also across their borders. Text that may
/// still become a stop string is held back. The match that is complete first wins (of those that
/// end together the longest), however the text is cut into pieces; the stop string and all after it
/// never leave. Time is linear in the text for each stop string. One per answer; not thread-safe.
class StopMatcher {
 public:
  /// An empty stop string is an Error(kUsage).
  explicit StopMatcher(std::vector<std::string> stops);
  /// The text that may leave now. After stopped() every push returns "".
  std::string push(std::string_view text);
  /// What was held back, at the end of an answer that did not stop.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  /// One stop string as a Knuth-Morris-Pratt automaton.
  struct Stop {
    std::string text;
    std::vector<uint32_t> border;  // [n]: longest proper border of the first n + 1 bytes
    size_t matched = 0;            // bytes of `text` that the stream ends with
  };

  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace orthrus
