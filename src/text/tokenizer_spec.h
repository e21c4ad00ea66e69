#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf.h"
#include "text/pretokenizer.h"
#include "text/space_marks.h"

namespace orthrus {

/// A token that is cut out of the text before anything else.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool strip_left = false;   ///< takes the white space before it too
  bool strip_right = false;  ///< takes the white space behind it too
  bool normalized = false;   ///< looked for in the normalised text
};

/// What a tokenizer file says, read but not yet checked against each other: texts are spelled as in
/// the file: in the byte-level alphabet of GPT-2, or with `marks` as SentencePiece spells them.
struct TokenizerSpec {
  std::string where;    ///< the file, for messages
  std::string storage;  ///< what the views below point into, unless into the file itself
  std::vector<std::pair<std::string_view, int32_t>> vocabulary;
  std::vector<std::pair<std::string_view, std::string_view>> merges;  ///< by rank
  std::vector<bool> tied;  ///< merges of the rank of the one before; empty: none
  std::vector<AddedToken> added;
  std::vector<SplitStep> split;
  bool nfc = false;
  /// SentencePiece's kind: tokens are characters with marks for spaces, and characters without a
  /// token fall back to those of their bytes. `split`, `nfc` and the unknown token are not used.
  std::optional<SpaceMarks> marks;
  bool ignore_merges = false;  ///< a piece that is a token is that token
  std::string unknown_token;   ///< for bytes without a token; empty: they vanish
  bool fuse_unknown = false;
  std::vector<int32_t> prefix;  ///< tokens that the file puts before a text

  TokenizerSpec() = default;
  TokenizerSpec(TokenizerSpec&&) = delete;  // views point into `storage`
};

/// Fills `spec`, whose `where` is set. Error(kInput) names what is malformed or not supported.
void read_tokenizer_json(std::string_view json, TokenizerSpec& spec);
void read_tokenizer_gguf(const GgufMetadata& metadata, TokenizerSpec& spec);

/// Cuts "left right" at its only space into a merge; Error(kInput) names number `rank` otherwise.
std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, size_t rank,
                                                          const std::string& where);

}  // namespace orthrus
