// Where answers end: stop tokens, and the least tokens before any end.
#include <gtest/gtest.h>

#include "engine/engine_requests.h"

namespace orthrus {
namespace {

class AnswerEnd : public testing::Test {
 protected:
  AnswerEnd() { options_.max_new_tokens = 60; }

  GenerateResult answer() {
    const std::vector<int32_t> prompt = generator_.loaded().tokenizer.encode(
        "<|im_start|>user\nName a colour.<|im_end|>\n<|im_start|>assistant\n");
    return generator_.generate(prompt, options_, nullptr, nullptr, {});
  }
  /// The same with drafts always and without any.
  GenerateResult both_ways() {
    options_.draft_max = 7;
    const GenerateResult dual = answer();
    options_.draft_max = 0;
    const GenerateResult plain = answer();
    EXPECT_EQ(dual.token_ids, plain.token_ids);
    EXPECT_EQ(dual.text, plain.text);
    return dual;
  }
  std::string error() {
    try {
      answer();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "no error";
  }

  Generator generator_{demo_options(WeightFormat::kBF16)};
  GenerateOptions options_;
};

TEST_F(AnswerEnd, NoEndAmongTheLeastTokens) {
  const int32_t eos = generator_.loaded().model.config.eos_token_ids.front();
  for (const double temperature : {0.0, 1.0}) {
    options_.sampling.temperature = temperature;
    options_.min_new_tokens = 0;
    // The end is what the model would write at once, if it may.
    options_.sampling.logit_bias = {{eos, 1000}};
    EXPECT_EQ(both_ways().token_ids, std::vector<int32_t>{eos});
    for (const size_t least : {1, 8, 23}) {
      options_.min_new_tokens = static_cast<int64_t>(least);
      const GenerateResult result = both_ways();
      ASSERT_EQ(result.token_ids.size(), least + 1);
      EXPECT_EQ(result.token_ids.back(), eos);
      EXPECT_EQ(std::count(result.token_ids.begin(), result.token_ids.end(), eos), 1);
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
    }
  }
}

TEST_F(AnswerEnd, NoStopStringBeginsInTheLeastTokens) {
  options_.ignore_eos = true;
  options_.stop = {"e"};
  const std::string soon = both_ways().text;
  options_.min_new_tokens = 20;
  const GenerateResult result = both_ways();
  EXPECT_GT(result.token_ids.size(), 20u);
  EXPECT_GT(result.text.size(), soon.size());
  EXPECT_NE(result.text.find('e'), std::string::npos);
  options_.stop.clear();
  EXPECT_TRUE(both_ways().text.starts_with(result.text));
}

TEST_F(AnswerEnd, AStopTokenIsNoPartOfTheText) {
  options_.ignore_eos = true;
  const GenerateResult whole = both_ways();
  options_.stop_token_ids = {whole.token_ids[5]};
  const GenerateResult result = both_ways();
  EXPECT_EQ(result.token_ids.back(), whole.token_ids[5]);
  EXPECT_EQ(result.finish_reason, FinishReason::kStop);
  const auto& tokenizer = generator_.loaded().tokenizer;
  std::string text;
  for (size_t i = 0; i + 1 < result.token_ids.size(); ++i) {
    if (!tokenizer.is_special(result.token_ids[i]))
      text += tokenizer.token_bytes(result.token_ids[i]);
  }
  EXPECT_EQ(result.text, text);
  options_.min_new_tokens = 30;
  const GenerateResult later = both_ways();
  EXPECT_GE(later.token_ids.size(), 30u);
  EXPECT_EQ(std::count(later.token_ids.begin(), later.token_ids.begin() + 30, whole.token_ids[5]),
            0);
}

TEST_F(AnswerEnd, WhatCannotBeIsRefused) {
  options_.min_new_tokens = -1;
  EXPECT_EQ(error(), "min_new_tokens: expected 0 or more, found -1");
  options_.min_new_tokens = 3;
  options_.grammar = "root ::= [a-z]+";
  EXPECT_EQ(error(), "min_new_tokens: expected 0 beside a grammar or schema, found 3");
  options_ = {};
  options_.stop_token_ids = {-1};
  EXPECT_NE(error().find("stop_token_ids: expected token ids below"), std::string::npos);
}

}  // namespace
}  // namespace orthrus
