#include "engine/answer.h"

#include <utility>

#include "base/error.h"
#include "engine/request_prompt.h"

namespace orthrus {
namespace {

std::unique_ptr<LeastTokens> least_tokens(const GenerateOptions& options,
                                          const ModelConfig& config) {
  const int64_t least = options.min_new_tokens;
  if (least < 0) fail_usage("min_new_tokens: expected 0 or more, found {}", least);
  if (least == 0) return nullptr;
  if (!options.grammar.empty() || !options.json_schema.empty()) {
    fail_usage("min_new_tokens: expected 0 beside a grammar or schema, found {}", least);
  }
  return std::make_unique<LeastTokens>(least, end_tokens(options, config.eos_token_ids),
                                       config.vocab_size);
}

}  // namespace

Answer::Answer(const AnswerParts& parts, std::span<const int32_t> input_ids,
               GenerateOptions options, Streamer* streamer)
    : parts_(parts),
      prompt_(request_prompt(input_ids, parts.loaded.model.config, parts.max_seq_len)),
      options_(std::move(options)),
      sink_(parts.loaded.tokenizer, options_.stop, options_.min_new_tokens, streamer),
      form_(parts.grammars.constraint(options_)),
      least_tokens_(least_tokens(options_, parts.loaded.model.config)) {}

int64_t Answer::reusable_tokens() const {
  const auto known = static_cast<int64_t>(tokens().size());
  const auto prompt = static_cast<int64_t>(prompt_.size());
  return known > prompt ? known - 1 : reusable_prompt(prompt, options_);
}

void Answer::start(BlockTable& table) {
  ORTHRUS_CHECK(!decoder_);
  Decoder::Setup setup{};
  setup.model = &parts_.loaded.model;
  setup.table = &table;
  setup.prompt = prompt_;
  setup.options = &options_;
  setup.eos_token_ids = parts_.loaded.model.config.eos_token_ids;
  setup.max_seq_len = parts_.max_seq_len;
  setup.prefill_chunk = parts_.prefill_chunk;
  setup.cost = &parts_.cost;
  setup.sink = &sink_;
  setup.drafter = parts_.drafter;
  setup.constraint = form_ ? static_cast<TokenConstraint*>(form_.get()) : least_tokens_.get();
  decoder_.emplace(setup);
  table_ = &table;
}

void Answer::add(const DecodeLoop::Times& times) {
  times_.prefill_seconds += times.prefill_seconds;
  times_.decode_seconds += times.decode_seconds;
}

void Answer::cancel() {
  if (decoder_) decoder_->cancel();
}

GenerateResult Answer::finish() {
  GenerateResult result;
  if (decoder_) {
    if (decoder_->error() && form_ && form_->error()) throw FormError(*form_->error());
    result = decoder_->result();
    sink_.finish();
  } else {  // cancelled before its turn
    result.finish_reason = FinishReason::kCancelled;
  }
  result.text = sink_.text();
  result.prompt_tokens = static_cast<int64_t>(prompt_.size());
  result.cached_tokens = cached_tokens_;
  result.prefill_seconds = times_.prefill_seconds;
  result.decode_seconds = times_.decode_seconds;
  result.kv_bytes = table_ ? static_cast<int64_t>(table_->bytes()) : 0;
  return result;
}

}  // namespace orthrus
