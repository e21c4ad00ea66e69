#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orthrus {

/// "▁" (U+2581), which stands for a space in the tokens of SentencePiece.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// How a tokenizer of SentencePiece's kind (Llama 2, Mistral) marks the spaces of a text.
struct SpaceMarks {
  /// The mark that comes first, in a text without a space there.
  enum class Prefix : uint8_t {
    kNone,
    kAlways,           ///< before each text between added tokens, also where it begins with a space
    kUnlessThere,      ///< as kAlways, but not before a space
    kFirstUnlessThere  ///< only at the very beginning, and not before a space
  };
  Prefix prefix = Prefix::kNone;
  /// By the normalizer: before the added tokens of normalised text are looked for. Else behind it.
  bool in_normalizer = false;
  bool split = false;  ///< a piece begins at each mark and cannot go over the next
  bool strip = false;  ///< a decoded text loses one space at its beginning
};

/// `text` with marks for spaces, and the first mark as `marks` says.
std::string mark_spaces(const SpaceMarks& marks, std::string_view text, bool at_beginning);

/// `text` with spaces for marks.
std::string unmark_spaces(std::string_view text);

/// Cuts before each mark, but not at the beginning.
std::vector<std::string_view> split_at_marks(std::string_view text);

/// "<0x0A>", the token of a byte that no other token covers.
std::string byte_token_name(uint8_t byte);
/// The byte of such a name.
std::optional<uint8_t> byte_of_token(std::string_view name);

/// A token that merging may make, with its score.
struct ScoredPiece {
  std::string_view text;
  double score = 0;
};

/// Two neighbours that become one token. Of all in a text that of the lowest rank, then the
/// leftmost, comes first.
struct ScoredMerge {
  std::string_view left, right;
  uint32_t rank = 0;
};

/// Pieces longer than this are not cut into sides: SentencePiece's have at most 16 characters
/// unless a model says otherwise.
inline constexpr size_t kMaxScoredPieceBytes = 512;

/// SentencePiece's BPE merges the neighbours whose token has the best score: every way to cut a
/// piece into two others, in order of rank. Texts of equal score have one rank. Scores must be
/// finite and pieces at most kMaxScoredPieceBytes long.
std::vector<ScoredMerge> merges_by_score(const std::vector<ScoredPiece>& pieces);

}  // namespace orthrus
