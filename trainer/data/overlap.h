#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace orthrus::train {

/// Finds texts that share a run of kWords words with a held-out text, the usual measure of
/// contamination (Brown et al., 2020, appendix C). Words are runs of letters and digits, without
/// case; a held-out text of fewer words is found only as a whole. Runs are compared by 64-bit
/// hashes: a text may be refused in error, never kept in error.
class Overlap {
 public:
  static constexpr size_t kWords = 13;

  void hold_out(std::string_view text);
  /// Whether a held-out text has a run of words that `text` has too.
  bool found_in(std::string_view text) const;

 private:
  std::unordered_set<uint64_t> runs_;    // of kWords words
  std::unordered_set<uint64_t> wholes_;  // texts of fewer words
};

}  // namespace orthrus::train
