#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pretokenizer_regex.h"

namespace orthrus {

/// What becomes of the matches of a Split step, as in the `tokenizers` library.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Cuts at the matches of a pattern. With `invert` matches and what lies between change roles.
struct RegexSplit {
  Regex regex;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

/// Cuts out digits (Unicode categories Nd, Nl, No): each alone, or each run of them.
struct DigitSplit {
  bool individual = true;
};

using SplitStep = std::variant<RegexSplit, DigitSplit>;

/// The patterns of known models, for GGUF files, which only name them.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Cuts text into the pieces that are merged on their own. The steps follow one another, each on
/// every piece of the last one as a text of its own: what looks ahead or behind stops at the
/// piece's ends. Immutable and safe to use from many threads.
class Pretokenizer {
 public:
  Pretokenizer() = default;
  explicit Pretokenizer(std::vector<SplitStep> steps) : steps_(std::move(steps)) {}

  /// The pieces of `text` (valid UTF-8) in order, none empty; views into it.
  std::vector<std::string_view> split(std::string_view text, RegexBudget& budget) const;

 private:
  std::vector<SplitStep> steps_;
};

}  // namespace orthrus
