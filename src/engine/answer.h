#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/block_table.h"
#include "decode/cost_model.h"
#include "decode/decoder.h"
#include "decode/least_tokens.h"
#include "engine/grammars.h"
#include "engine/loaded_model.h"
#include "engine/text_sink.h"
#include "orthrus/language_model.h"
#include "orthrus/options.h"

namespace orthrus {

/// What answers are made with; all of it must outlive them.
struct AnswerParts {
  const LoadedModel& loaded;
  CostModel& cost;
  Grammars& grammars;
  int64_t max_seq_len;
  int64_t prefill_chunk;       ///< most rows of one prompt in a pass
  Drafter* drafter = nullptr;  ///< for tests
};

/// One request on its way from the prompt's tokens to the result, whoever runs its passes.
class Answer {
 public:
  /// Error(kInput) for a prompt that cannot be served (request_prompt), Error(kUsage) for a grammar
  /// that is wrong. `streamer` may be null and must outlive this.
  Answer(const AnswerParts& parts, std::span<const int32_t> input_ids, GenerateOptions options,
         Streamer* streamer);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  const std::vector<int32_t>& prompt() const { return prompt_; }
  const GenerateOptions& options() const { return options_; }
  /// Prompt and answer so far.
  std::span<const int32_t> tokens() const { return decoder_ ? decoder_->tokens() : prompt_; }
  /// How many of tokens() may come from a cache before the next pass.
  int64_t reusable_tokens() const;

  /// Makes the decoder on a table that holds up to reusable_tokens() of the prompt. Error as
  /// Decoder has them.
  void start(BlockTable& table);
  /// The prompt's tokens that were found in a cache when the first pass began.
  void set_cached_tokens(int64_t tokens) { cached_tokens_ = tokens; }
  /// None before start().
  Decoder* decoder() { return decoder_ ? &*decoder_ : nullptr; }
  const Decoder* decoder() const { return decoder_ ? &*decoder_ : nullptr; }

  void add(const DecodeLoop::Times& times);
  void cancel();
  /// The result of an answer that has ended: text held back is handed out. Throws the decoder's
  /// error, or a FormError where the form is to blame.
  GenerateResult finish();

 private:
  AnswerParts parts_;
  std::vector<int32_t> prompt_;
  GenerateOptions options_;
  TextSink sink_;
  std::unique_ptr<GrammarConstraint> form_;  // one of the two, or none
  std::unique_ptr<LeastTokens> least_tokens_;
  std::optional<Decoder> decoder_;
  DecodeLoop::Times times_;
  int64_t cached_tokens_ = 0;
  const BlockTable* table_ = nullptr;
};

}  // namespace orthrus
