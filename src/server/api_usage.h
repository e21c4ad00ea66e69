#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "orthrus/options.h"
#include "text/tokenizer.h"

namespace orthrus {

/// The "usage" of an answer: tokens of all its choices, and of each prompt once.
class Usage {
 public:
  /// `first_of_prompt`: the first choice of its prompt.
  void add(const GenerateResult& result, bool first_of_prompt, int64_t reasoning_tokens = 0);
  nlohmann::ordered_json json() const;

 private:
  int64_t prompt_ = 0;
  int64_t cached_ = 0;
  int64_t completion_ = 0;
  int64_t reasoning_ = 0;
  int64_t accepted_ = 0;
  int64_t rejected_ = 0;
};

/// How many of an answer's tokens its first `text_bytes` bytes of text took.
int64_t tokens_of_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t text_bytes);

/// The "timings" of one choice, named as llama-server has them, and what one pass gave
/// (cycles, tokens_per_cycle, forward_passes, tpf).
nlohmann::ordered_json timings_json(const GenerateResult& result);

}  // namespace orthrus
