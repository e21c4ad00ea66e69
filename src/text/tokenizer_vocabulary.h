#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orthrus {

/// Appends the bytes that `spelling` stands for in the alphabet of GPT-2's byte-level BPE (every
/// byte is a printable character, "Ġ" a space); false (and nothing appended) where a character is
/// not of it.
bool append_spelled_bytes(std::string& out, std::string_view spelling);

/// Tokens by id and by their text: in a byte-level vocabulary the bytes that they stand for.
/// Immutable after building and safe to use from many threads.
class Vocabulary {
 public:
  /// For ids below `ids` and `bytes` bytes of tokens in all (of `text` and, where they differ,
  /// `bytes`), which adding must not exceed.
  Vocabulary(size_t ids, size_t bytes);
  Vocabulary(Vocabulary&&) = default;

  /// A token of the model, spelled in the byte-level alphabet; one that is not stands for its own
  /// text and is not found by text. False where the id is taken. The last of a spelling is found.
  bool add_spelled(std::string_view spelling, int32_t id);
  /// A token of the model that is found by `text` and stands for `bytes`. False where the id is
  /// taken. The last of a text is found.
  bool add(std::string_view text, std::string_view bytes, int32_t id);
  /// An added token, which is found by `text` and stands for `bytes`; takes the id over.
  void add_literal(std::string_view text, std::string_view bytes, int32_t id, bool special);

  size_t size() const { return tokens_.size(); }
  bool has(int32_t id) const;
  std::string_view bytes(int32_t id) const { return tokens_[static_cast<size_t>(id)].bytes; }
  bool is_special(int32_t id) const { return has(id) && tokens_[static_cast<size_t>(id)].special; }

  /// The model's token of this text, -1 if there is none.
  int32_t find(std::string_view text) const;
  /// The added token of this text, or else the model's; -1 if there is none.
  int32_t find_any(std::string_view text) const;

 private:
  struct Token {
    std::string_view bytes;
    bool present = false;
    bool special = false;
  };

  std::string_view store(std::string_view bytes);

  std::vector<char> storage_;  // never reallocated: views point into it
  std::vector<Token> tokens_;
  std::unordered_map<std::string_view, int32_t> by_text_;
  std::unordered_map<std::string_view, int32_t> literals_;
};

}  // namespace orthrus
