#include "text/pretokenizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace orthrus {
namespace {

/// A part of a piece, a match or what lies between two.
struct Part {
  ByteRange range;
  bool match = false;
};

/// Covers [0, size): the matches and the gaps between them.
std::vector<Part> parts_of(const std::vector<ByteRange>& matches, size_t size) {
  std::vector<Part> parts;
  size_t end = 0;
  for (ByteRange match : matches) {
    if (match.begin > end) parts.push_back({{end, match.begin}, false});
    parts.push_back({match, true});
    end = match.end;
  }
  if (size > end) parts.push_back({{end, size}, false});
  return parts;
}

/// Joins each part to the one before where `joins(part, one before)`.
template <typename Joins>
std::vector<Part> join(const std::vector<Part>& parts, Joins joins) {
  std::vector<Part> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && joins(parts[i], parts[i - 1])) {
      out.back().range.end = parts[i].range.end;
    } else {
      out.push_back(parts[i]);
    }
  }
  return out;
}

std::vector<Part> apply(SplitBehavior behavior, std::vector<Part> parts) {
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return parts;
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.match; });
      return parts;
    case SplitBehavior::kMergedWithPrevious:
      return join(parts, [](auto& part, auto& before) { return part.match && !before.match; });
    case SplitBehavior::kMergedWithNext:
      return join(parts, [](auto& part, auto& before) { return !part.match && before.match; });
    case SplitBehavior::kContiguous:
      return join(parts, [](auto& part, auto& before) { return part.match == before.match; });
  }
  return parts;
}

void split_step(const RegexSplit& step, std::string_view text, RegexBudget& budget,
                std::vector<std::string_view>& out) {
  std::vector<Part> parts = parts_of(step.regex.matches(text, budget), text.size());
  if (step.invert) {
    for (Part& part : parts) part.match = !part.match;
  }
  for (const Part& part : apply(step.behavior, std::move(parts))) {
    if (part.range.end > part.range.begin) {
      out.push_back(text.substr(part.range.begin, part.range.end - part.range.begin));
    }
  }
}

bool is_digit(char32_t codepoint) {
  if (codepoint < 0x80) return codepoint >= '0' && codepoint <= '9';
  utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(codepoint));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

void split_step(const DigitSplit& step, std::string_view text, RegexBudget&,
                std::vector<std::string_view>& out) {
  size_t begin = 0;  // of the piece that is open
  bool in_digits = false;
  for (size_t position = 0; position < text.size();) {
    Utf8Char character = utf8_at(text, position);
    bool digit = is_digit(character.codepoint);
    bool cut = digit != in_digits || (digit && step.individual);
    if (cut && position > begin) {
      out.push_back(text.substr(begin, position - begin));
      begin = position;
    }
    in_digits = digit;
    position += character.length;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
}

}  // namespace

std::vector<std::string_view> Pretokenizer::split(std::string_view text,
                                                  RegexBudget& budget) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const SplitStep& step : steps_) {
    std::vector<std::string_view> next;
    for (std::string_view piece : pieces) {
      std::visit([&](const auto& split) { split_step(split, piece, budget, next); }, step);
    }
    pieces = std::move(next);
  }
  return pieces;
}

}  // namespace orthrus
