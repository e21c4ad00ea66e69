#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "orthrus/options.h"
#include "text/tokenizer.h"

namespace orthrus {

/// A token's bytes as JSON can show them: the text, or "bytes:\xe2\x80" (as OpenAI spells it) where
/// they are part of a character. Nothing for ids without a token.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

/// A chat choice's "logprobs" for these tokens: {"content": [{"token", "logprob", "bytes",
/// "top_logprobs": [...]}], "refusal": null}. As many tokens as entries in `logprobs`.
nlohmann::ordered_json chat_logprobs(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                     std::span<const TokenLogprobs> logprobs);

/// Builds a completion choice's "logprobs": {"tokens", "token_logprobs", "top_logprobs",
/// "text_offset"}, for an answer's tokens in order. Offsets count characters (code points) of the
/// choice's text; a token that begins within a character stands at that character. One per choice;
/// the tokenizer must outlive it.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Of the prompt's tokens, where the choice's text begins with the prompt: the first one has no
  /// probability (null). The first `hidden` tokens are not in the text.
  nlohmann::ordered_json prompt(std::span<const int32_t> ids,
                                std::span<const TokenLogprobs> logprobs, size_t hidden);
  /// Of the next tokens of the answer.
  nlohmann::ordered_json answer(std::span<const int32_t> ids,
                                std::span<const TokenLogprobs> logprobs);

 private:
  void add(nlohmann::ordered_json& out, int32_t id, const TokenLogprobs* logprobs, bool in_text);
  size_t offset_of(std::string_view bytes) const;

  const Tokenizer& tokenizer_;
  size_t characters_ = 0;  // whole ones so far
  std::string partial_;    // of the next one
};

/// Appends the lists of `more` to those of `lists`, which may be null.
void append_completion_logprobs(nlohmann::ordered_json& lists, const nlohmann::ordered_json& more);

}  // namespace orthrus
