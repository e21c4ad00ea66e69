#include "server/api_usage.h"

#include "text/stream_decoder.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

double rate(int64_t count, double seconds) {
  return seconds > 0 && count > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

void Usage::add(const GenerateResult& result, bool first_of_prompt, int64_t reasoning_tokens) {
  if (first_of_prompt) {
    prompt_ += result.prompt_tokens;
    cached_ += result.cached_tokens;
  }
  completion_ += static_cast<int64_t>(result.token_ids.size());
  reasoning_ += reasoning_tokens;
  accepted_ += result.accepted;
  rejected_ += result.drafted - result.accepted;
}

Json Usage::json() const {
  return {{"prompt_tokens", prompt_},
          {"completion_tokens", completion_},
          {"total_tokens", prompt_ + completion_},
          {"prompt_tokens_details", {{"cached_tokens", cached_}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", reasoning_},
            {"accepted_prediction_tokens", accepted_},
            {"rejected_prediction_tokens", rejected_}}}};
}

int64_t tokens_of_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                       size_t text_bytes) {
  StreamDecoder decoder(tokenizer);
  size_t bytes = 0;
  int64_t count = 0;
  for (int32_t id : ids) {
    if (bytes >= text_bytes) break;
    bytes += decoder.push(id).size();
    ++count;
  }
  return count;
}

Json timings_json(const GenerateResult& result) {
  const auto predicted = static_cast<int64_t>(result.token_ids.size());
  const int64_t read = result.prompt_tokens - result.cached_tokens;
  return {{"cache_n", result.cached_tokens},
          {"prompt_n", read},
          {"prompt_ms", 1e3 * result.prefill_seconds},
          {"prompt_per_second", rate(read, result.prefill_seconds)},
          {"predicted_n", predicted},
          {"predicted_ms", 1e3 * result.decode_seconds},
          // The first token comes from the pass that reads the prompt.
          {"predicted_per_second", rate(predicted - 1, result.decode_seconds)},
          {"draft_n", result.drafted},
          {"draft_n_accepted", result.accepted},
          {"cycles", result.cycles},
          {"tokens_per_cycle", result.tokens_per_cycle()},
          {"forward_passes", result.forward_passes},
          {"tpf", result.tpf()}};
}

}  // namespace orthrus
