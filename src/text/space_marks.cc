#include "text/space_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "text/utf8.h"

namespace orthrus {

std::string mark_spaces(const SpaceMarks& marks, std::string_view text, bool at_beginning) {
  using Prefix = SpaceMarks::Prefix;
  std::string out;
  const bool there = text.starts_with(' ') || text.starts_with(kSpaceMark);
  if ((marks.prefix == Prefix::kAlways) || (marks.prefix == Prefix::kUnlessThere && !there) ||
      (marks.prefix == Prefix::kFirstUnlessThere && !there && at_beginning)) {
    out += kSpaceMark;
  }
  for (const char byte : text) {
    if (byte == ' ') {
      out += kSpaceMark;
    } else {
      out += byte;
    }
  }
  return out;
}

std::string unmark_spaces(std::string_view text) {
  std::string out;
  for (size_t position = 0; position < text.size();) {
    const bool mark = text.substr(position).starts_with(kSpaceMark);
    out += mark ? ' ' : text[position];
    position += mark ? kSpaceMark.size() : 1;
  }
  return out;
}

std::vector<std::string_view> split_at_marks(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t size = std::min(text.find(kSpaceMark, 1), text.size());
    pieces.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

std::string byte_token_name(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<uint8_t> byte_of_token(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return std::nullopt;
  uint32_t value = 0;
  for (const char digit : name.substr(3, 2)) {
    const size_t number = std::string_view("0123456789ABCDEF").find(digit);
    if (number == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(number);
  }
  return static_cast<uint8_t>(value);
}

std::vector<ScoredMerge> merges_by_score(const std::vector<ScoredPiece>& pieces) {
  std::unordered_set<std::string_view> known;
  for (const ScoredPiece& piece : pieces) known.insert(piece.text);
  std::vector<ScoredPiece> best_first = pieces;
  std::stable_sort(best_first.begin(), best_first.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  std::vector<ScoredMerge> merges;
  uint32_t rank = 0;
  for (size_t i = 0; i < best_first.size(); ++i) {
    const auto& [text, score] = best_first[i];
    ORTHRUS_CHECK(text.size() <= kMaxScoredPieceBytes);
    if (i > 0 && score != best_first[i - 1].score) ++rank;
    for (size_t middle = 1; middle < text.size(); ++middle) {
      const std::string_view left = text.substr(0, middle), right = text.substr(middle);
      if (known.contains(left) && known.contains(right)) merges.push_back({left, right, rank});
    }
  }
  return merges;
}

}  // namespace orthrus
