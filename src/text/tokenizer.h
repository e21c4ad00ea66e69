#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

namespace orthrus {

/// Byte-level BPE (Qwen, Llama 3, SmolLM2), as the Hugging Face `tokenizers` library computes it:
/// added tokens are cut out first, the rest is normalised (NFC where the file says so), split by
/// the model's regex (Oniguruma) and merged by rank. Or SentencePiece's BPE (Llama 2, Mistral):
/// marks stand for spaces, characters are merged by rank or score, and those that the vocabulary
/// lacks are the tokens of their bytes. Immutable and safe to use from many threads.
class Tokenizer {
 public:
  /// From the text of a tokenizer.json. Error(kInput) names what is not supported or malformed.
  static Tokenizer from_json(std::string_view json);
  /// From tokenizer.ggml.* of a GGUF file (model "gpt2" or "llama").
  static Tokenizer from_gguf(const GgufMetadata& metadata);
  /// From a directory with tokenizer.json, a tokenizer.json, or a GGUF file (told by its content).
  static Tokenizer load(const std::string& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text`; special tokens written in the text become their ids. None is added,
  /// unless `add_special_tokens`: then what the file puts before a text (Llama 3: the beginning of
  /// the text) comes first where the text does not begin with it.
  /// Invalid UTF-8 is encoded byte by byte, as its replacement would lose it. Time is near linear
  /// in the length whatever the text. As in the `tokenizers` library a byte for which the
  /// vocabulary has no token (SmolLM2 lacks some control characters) is left out, or becomes the
  /// file's unk_token. Error(kInput) for texts of 2^31 bytes and where the file's pattern takes too
  /// long.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens = false) const;

  /// The bytes of the tokens, as a text of its own: where encode puts a space before a text
  /// (SentencePiece), one is taken away. Ids outside the vocabulary are an Error(kInput).
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// Whether the id stands for a token; not all below vocab_size() need to.
  bool has_token(int32_t id) const;
  /// The bytes of one token, possibly part of a character. A view into the tokenizer. Error(kInput)
  /// where the id has no token.
  std::string_view token_bytes(int32_t id) const;
  /// Bytes of the longest token.
  size_t max_token_bytes() const;
  /// False for ids without a token.
  bool is_special(int32_t id) const;
  /// -1 where no token has that exact text.
  int32_t token_id(std::string_view token) const;
  /// Number of ids, added tokens included (the model's vocabulary may be larger: padding).
  int32_t vocab_size() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
