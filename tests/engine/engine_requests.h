#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/test_models.h"

namespace orthrus {

/// What became of a request. Another thread may wait for `ended`.
struct Heard : EngineListener {
  void on_text(std::string_view piece) override { text += piece; }
  void on_step(const GenerateResult& so_far) override {
    ++steps;
    EXPECT_GT(so_far.token_ids.size(), tokens);
    tokens = so_far.token_ids.size();
  }
  void on_done(GenerateResult done) override { result = std::move(done), end(); }
  void on_failed(const Error& failed) override {
    error = failed.what();
    of_form = dynamic_cast<const FormError*>(&failed) != nullptr;
    end();
  }
  void end() {
    ended = true;
    ended.notify_one();
  }

  std::string text;
  int64_t steps = 0;
  size_t tokens = 0;  // that on_step has told of
  std::optional<GenerateResult> result;
  std::string error;
  bool of_form = false;  // the error
  std::atomic<bool> ended = false;
};

inline std::vector<int32_t> random_prompt(std::mt19937& random, size_t size) {
  std::vector<int32_t> prompt(size);
  for (int32_t& token : prompt) token = static_cast<int32_t>(3 + random() % 1000);
  return prompt;
}

/// Anything that may be asked for, with few beginnings that many requests share. At most 240 tokens
/// of prompt, 150 of answer.
inline EngineRequest random_request(std::mt19937& random) {
  EngineRequest request;
  std::mt19937 beginning(random() % 3);
  if (random() % 4 != 0) request.prompt = random_prompt(beginning, random() % 2 ? 130 : 64);
  const auto rest = random_prompt(random, 1 + random() % 100);
  request.prompt.insert(request.prompt.end(), rest.begin(), rest.end());
  request.client = std::string(1, static_cast<char>('a' + random() % 5));
  request.priority = static_cast<int>(random() % 3);
  GenerateOptions& options = request.options;
  options.max_new_tokens = static_cast<int64_t>(random() % 150);
  options.draft_max = std::vector<int64_t>{-1, -1, 7, 3, 0}[random() % 5];
  options.ignore_eos = random() % 2;
  SamplingOptions& sampling = options.sampling;
  sampling.temperature = std::vector<double>{0, 0, 0.7, 1.2}[random() % 4];
  sampling.seed = random();
  if (random() % 3 == 0) sampling.top_p = 0.9;
  if (random() % 5 == 0) sampling.repeat_penalty = 1.2;
  if (random() % 5 == 0) sampling.presence_penalty = 0.5;
  sampling.penalties_of_answer = random() % 2;
  if (random() % 4 == 0) options.logprobs = static_cast<int64_t>(random() % 4);
  options.prompt_logprobs = random() % 8 == 0;
  if (random() % 6 == 0) {
    options.consensus = random() % 2 ? Consensus::kRejection : Consensus::kKl;
    options.draft_max = 5;
  }
  if (random() % 5 == 0) options.stop = {"e t", "\n", "ing"};
  if (random() % 8 == 0) {
    options.json_schema = R"({"type": "array", "items": {"type": "integer"}, "maxItems": 6})";
  } else if (random() % 4 == 0)
    options.min_new_tokens = static_cast<int64_t>(random() % 40);
  if (random() % 4 == 0) {
    for (int32_t token = 3; token < 100; ++token) options.stop_token_ids.push_back(token);
  }
  return request;
}

inline void expect_equal(const std::vector<TokenLogprobs>& found,
                         const std::vector<TokenLogprobs>& alone) {
  ASSERT_EQ(found.size(), alone.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].logprob, alone[i].logprob);
    EXPECT_EQ(found[i].top, alone[i].top);
  }
}

/// As the contract has it: the very tokens, and text by pieces that make up the whole.
inline void expect_as_alone(const Heard& heard, const GenerateResult& alone) {
  ASSERT_TRUE(heard.result) << heard.error;
  EXPECT_EQ(heard.result->token_ids, alone.token_ids);
  EXPECT_EQ(heard.result->text, alone.text);
  EXPECT_EQ(heard.text, alone.text);
  EXPECT_EQ(heard.result->finish_reason, alone.finish_reason);
  EXPECT_EQ(heard.result->prompt_tokens, alone.prompt_tokens);
  expect_equal(heard.result->logprobs, alone.logprobs);
  expect_equal(heard.result->prompt_logprobs, alone.prompt_logprobs);
}

}  // namespace orthrus
