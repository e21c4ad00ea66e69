#include "engine/request_prompt.h"

#include "base/error.h"

namespace orthrus {

std::vector<int32_t> request_prompt(std::span<const int32_t> input_ids, const ModelConfig& config,
                                    int64_t max_seq_len) {
  std::vector<int32_t> prompt(input_ids.begin(), input_ids.end());
  if (prompt.empty()) {
    // Something must be attended to: the token that starts (or separates) texts.
    int32_t first = config.bos_token_id;
    if (first < 0 && !config.eos_token_ids.empty()) first = config.eos_token_ids.front();
    if (first < 0) fail("the prompt is empty and the model has no bos or eos token to start from");
    prompt.push_back(first);
  }
  const auto size = static_cast<int64_t>(prompt.size());
  if (size >= max_seq_len) {
    fail(
        "the prompt has {} tokens, but the context holds {} (-c / max_seq_len) and one must be "
        "left for the answer",
        size, max_seq_len);
  }
  for (int32_t id : prompt) {
    if (id < 0 || id >= config.vocab_size) {
      fail("prompt token {} is outside the vocabulary of {}", id, config.vocab_size);
    }
  }
  return prompt;
}

}  // namespace orthrus
