// Log probabilities of answers and prompts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "decode/fake_model.h"
#include "decode/row_softmax.h"

namespace orthrus {
namespace {

constexpr int64_t kVocab = 50;

double naive_logprob(const std::vector<float>& row, int32_t token) {
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x));
  return static_cast<double>(row[static_cast<size_t>(token)]) - std::log(sum);
}

void expect_scores(const TokenLogprobs& found, const std::vector<float>& row, int32_t token,
                   size_t top) {
  EXPECT_NEAR(found.logprob, naive_logprob(row, token), 1e-5);
  ASSERT_EQ(found.top.size(), top);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kVocab; ++i) ids.push_back(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
  });
  for (size_t i = 0; i < top; ++i) {
    EXPECT_EQ(found.top[i].first, ids[i]);
    EXPECT_NEAR(found.top[i].second, naive_logprob(row, ids[i]), 1e-5);
  }
}

TEST(Logprobs, AreThoseOfTheArRowsWhateverTheDrafts) {
  for (const double noise : {0.0, 0.5}) {
    FakeModel fake(kVocab, 8, noise);
    FakeRun run(fake, prompt_of(11, kVocab));
    run.options.sampling.temperature = 0.7;
    run.options.sampling.logit_bias = {{3, 4.0}};  // of the raw row, not of what was drawn from
    run.options.logprobs = 3;
    run.options.max_new_tokens = 40;
    const GenerateResult result = run.generate();
    ASSERT_EQ(result.logprobs.size(), result.token_ids.size());
    EXPECT_TRUE(result.prompt_logprobs.empty());
    EXPECT_GT(result.accepted, 0);
    Tokens tokens = run.prompt;
    for (size_t i = 0; i < result.token_ids.size(); ++i) {
      expect_scores(result.logprobs[i], fake.ar_logits(tokens), result.token_ids[i], 3);
      tokens.push_back(result.token_ids[i]);
    }
  }
}

TEST(Logprobs, OfThePromptForAnyChunks) {
  FakeModel fake(kVocab, 8, 0.2);
  for (const int64_t size : {1, 2, 33, 100}) {
    for (const int64_t chunk : {1, 7, 32, 512}) {
      for (const int64_t new_tokens : {0, 5}) {
        FakeRun run(fake, prompt_of(size, kVocab));
        run.prefill_chunk = chunk;
        run.options.prompt_logprobs = true;
        run.options.logprobs = 0;
        run.options.max_new_tokens = new_tokens;
        const GenerateResult result = run.generate();
        EXPECT_EQ(static_cast<int64_t>(result.token_ids.size()), new_tokens);
        EXPECT_EQ(result.finish_reason, FinishReason::kLength);
        ASSERT_EQ(static_cast<int64_t>(result.prompt_logprobs.size()), size - 1);
        for (size_t i = 1; i < run.prompt.size(); ++i) {
          const Tokens before(run.prompt.begin(), run.prompt.begin() + static_cast<ptrdiff_t>(i));
          expect_scores(result.prompt_logprobs[i - 1], fake.ar_logits(before), run.prompt[i], 0);
        }
      }
    }
  }
}

TEST(Logprobs, SurviveThatTheCacheIsLost) {
  FakeModel fake(kVocab, 8, 0.2);
  FakeRun run(fake, prompt_of(70, kVocab));
  run.prefill_chunk = 16;
  run.options.prompt_logprobs = true;
  run.options.logprobs = 1;
  run.options.max_new_tokens = 20;
  const GenerateResult whole = run.generate();
  for (const int passes : {1, 2, 4, 6}) {
    FakeRun again(fake, run.prompt);
    again.prefill_chunk = 16;
    again.options = run.options;
    Decoder decoder(again.setup());
    for (int i = 0; i < passes; ++i) decoder.consume(fake.run(decoder.plan(64, 1)));
    if (decoder.finished()) continue;
    again.table.set_length(0);
    decoder.recompute();
    again.drive(decoder);
    EXPECT_EQ(decoder.result().token_ids, whole.token_ids);
    ASSERT_EQ(decoder.result().prompt_logprobs.size(), whole.prompt_logprobs.size());
    for (size_t i = 0; i < whole.prompt_logprobs.size(); ++i) {
      EXPECT_EQ(decoder.result().prompt_logprobs[i].logprob, whole.prompt_logprobs[i].logprob);
    }
    EXPECT_EQ(decoder.result().logprobs.size(), whole.logprobs.size());
  }
}

TEST(Logprobs, RowsThatAreNotFiniteHaveNone) {
  std::vector<float> weights;
  std::vector<float> row(10, 1.0f);
  row[4] = std::nanf("");
  EXPECT_EQ(RowSoftmax(row_ops(choose_isa()), row, weights).top, -1);
  row[4] = -INFINITY;
  const RowSoftmax banned(row_ops(choose_isa()), row, weights);
  EXPECT_NEAR(banned.log_probability(3), -std::log(9.0), 1e-6);
  EXPECT_EQ(banned.log_probability(4), -INFINITY);
  EXPECT_EQ(token_logprobs(banned, 0, 100).top.size(), 10u);
}

}  // namespace
}  // namespace orthrus
