#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct re_pattern_buffer;

namespace orthrus {

/// The backtracking steps that one call of encode may spend on long matches, whatever the pattern.
/// Patterns are outside input; those of the known models need fewer than ten steps a byte.
struct RegexBudget {
  explicit RegexBudget(size_t text_bytes) : limit(1'000'000 + 64 * text_bytes) {}
  size_t limit;
  size_t spent = 0;
};

/// A half-open range of bytes.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// An Oniguruma pattern (its default syntax, UTF-8), as the `tokenizers` library uses it. Immutable
/// and safe to use from many threads.
class Regex {
 public:
  /// Error(kInput) where the pattern is not valid; `where` names it in messages.
  Regex(const std::string& pattern, const std::string& where);

  const std::string& pattern() const { return source_; }

  /// All matches in `text` (valid UTF-8), left to right, without overlap. An empty match right
  /// after the last one is passed over. Error(kInput) where the budget does not suffice.
  std::vector<ByteRange> matches(std::string_view text, RegexBudget& budget) const;

 private:
  std::string source_;
  std::string where_;
  std::shared_ptr<re_pattern_buffer> pattern_;
};

}  // namespace orthrus
