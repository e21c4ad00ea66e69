#include "decode/prefill_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace orthrus {
namespace {

constexpr double kShare = 0.9;
constexpr PrefillPace::Terms kTerms{.share = kShare};

/// A small model; keys of a long context cost far more than the products of a row.
CostModel cost_model() {
  ModelCost cost;
  cost.shared = {.bytes = 1e8, .f32_macs = 0, .int8_macs = 1e8};
  cost.kv_bytes_per_token = 2e4;
  cost.attention_macs = 3e4;
  return {cost, {.bytes_per_second = 5e10, .f32_flops = 2e11, .int8_ops = 1e12}};
}

PassShape answers(int64_t count, int64_t context) {
  PassShape shape;
  shape.add(View::kAr, 1, 1, context, count);
  return shape;
}

PassShape with_prompt(PassShape shape, int64_t rows, int64_t position) {
  if (rows > 0) shape.add(View::kAr, rows, 0, position);
  return shape;
}

TEST(PrefillPace, ALongPromptStretchesTheStepsByItsShare) {
  const CostModel cost = cost_model();
  PrefillPace pace(cost);
  const PassShape decoding = answers(4, 500);
  const double step = cost.predict(decoding);
  double seconds = 0, longest = 0;
  int64_t steps = 0, position = 0;
  for (; position < 4096; ++steps) {
    ASSERT_LT(steps, 10000);
    const PrefillPace::Prompt prompt{4096 - position, position};
    const int64_t rows = pace.rows(decoding, {&prompt, 1}, kTerms, 512);
    const double time = cost.predict(with_prompt(decoding, rows, position));
    longest = std::max(longest, time);
    seconds += time;
    position += rows;
  }
  const double mean = seconds / static_cast<double>(steps);
  EXPECT_LE(mean, (1 + kShare) * step * 1.01);
  EXPECT_GE(mean, (1 + 0.8 * kShare) * step);  // and takes what it may
  EXPECT_LE(longest, 2.5 * step);
}

TEST(PrefillPace, AShortPromptAfterAQuietSpellIsReadFaster) {
  const CostModel cost = cost_model();
  const PassShape decoding = answers(4, 500);
  const double step = cost.predict(decoding);
  const PrefillPace::Prompt prompt{200, 0};
  PrefillPace pace(cost);
  const int64_t rows = pace.rows(decoding, {&prompt, 1}, kTerms, 512);
  PrefillPace rested(cost);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rested.rows(decoding, {}, kTerms, 512), 0);
  const int64_t rows_rested = rested.rows(decoding, {&prompt, 1}, kTerms, 512);
  EXPECT_GT(rows_rested, 2 * rows);
  EXPECT_LE(cost.predict(with_prompt(decoding, rows_rested, 0)), (1 + 8 * kShare) * step * 1.01);
}

TEST(PrefillPace, PromptsWithPassesOfTheirOwnSpendTheSame) {
  const CostModel cost = cost_model();
  PrefillPace pace(cost);
  const PassShape decoding = answers(4, 500);
  double prompts = 0, steps = 0;
  int passes = 0;
  for (int64_t position = 0; position < 2000; ++passes) {
    while (!pace.affords_own_pass()) {
      EXPECT_EQ(pace.rows(decoding, {}, kTerms, 512), 0);
      steps += cost.predict(decoding);
    }
    const PrefillPace::Prompt prompt{2000 - position, position};
    const int64_t rows = pace.rows({}, {&prompt, 1}, kTerms, 512);
    ASSERT_GE(rows, 1);
    prompts += cost.predict(with_prompt({}, rows, position));
    position += rows;
  }
  EXPECT_LT(passes, 200);  // of ten rows and more
  EXPECT_LE(prompts, kShare * steps * 1.01);
}

TEST(PrefillPace, WhatARowCostsBeyondTheCreditIsPaidBack) {
  const CostModel cost = cost_model();
  PrefillPace pace(cost);
  const PassShape decoding = answers(1, 0);
  const PrefillPace::Prompt far{100, 100000};  // a row costs many steps
  double seconds = 0;
  int64_t rows = 0;
  constexpr int kSteps = 2000;
  for (int i = 0; i < kSteps; ++i) {
    const int64_t now = pace.rows(decoding, {&far, 1}, kTerms, 512);
    seconds += cost.predict(with_prompt(decoding, now, far.position));
    rows += now;
  }
  EXPECT_GT(rows, 10);  // it goes on
  EXPECT_LE(seconds / kSteps, (1 + kShare) * cost.predict(decoding) * 1.05);
}

TEST(PrefillPace, ANewcomerBorrowsAndOthersPayBack) {
  const CostModel cost = cost_model();
  PrefillPace pace(cost);
  const PassShape decoding = answers(4, 500);
  const double step = cost.predict(decoding);
  const PrefillPace::Prompt flood{100000, 0};
  double seconds = 0;
  for (int i = 0; i < 50; ++i) {
    seconds +=
        cost.predict(with_prompt(decoding, pace.rows(decoding, {&flood, 1}, kTerms, 512), 0));
  }
  // The flood has spent everything; the newcomer's prompt still comes in at once, and only its.
  const std::vector<PrefillPace::Prompt> prompts = {{60, 0}, flood};
  const PrefillPace::Terms borrow{.share = kShare, .borrow = true};
  EXPECT_EQ(pace.rows(decoding, prompts, borrow, 512), 60);
  seconds += cost.predict(with_prompt(decoding, 60, 0));
  EXPECT_EQ(pace.rows(decoding, {&flood, 1}, kTerms, 512), 0);
  for (int i = 0; i < 50; ++i) {
    seconds +=
        cost.predict(with_prompt(decoding, pace.rows(decoding, {&flood, 1}, kTerms, 512), 0));
  }
  EXPECT_LE(seconds / 102, (1 + kShare) * step);
  // What may be borrowed is bounded.
  const PrefillPace::Prompt large{100000, 0};
  PrefillPace fresh(cost);
  const int64_t rows = fresh.rows(decoding, {&large, 1}, borrow, 4096);
  EXPECT_LE(cost.predict(with_prompt(decoding, rows, 0)), (1 + 8 * kShare) * step * 1.01);
  EXPECT_LE(fresh.rows(decoding, {&large, 1}, borrow, 4096),
            rows / 3);  // what a step has earned since
}

// Saved and borrowed together are no more than either alone, and a debt beside many answers is not
// one of as many seconds beside one.
TEST(PrefillPace, ASpendingAndADebtAreBounded) {
  const CostModel cost = cost_model();
  const PrefillPace::Terms borrow{.share = kShare, .borrow = true};
  const PassShape many = answers(32, 2000), one = answers(1, 0);
  const PrefillPace::Prompt large{100000, 0};
  PrefillPace pace(cost);
  for (int i = 0; i < 100; ++i) pace.rows(many, {}, kTerms, 4096);
  const double step = cost.predict(many);
  for (int i = 0; i < 3; ++i) {
    const int64_t rows = pace.rows(many, {&large, 1}, borrow, 4096);
    EXPECT_LE(cost.predict(with_prompt(many, rows, 0)), (1 + 8 * kShare) * step * 1.01) << i;
  }
  int steps = 0;
  while (pace.rows(one, {&large, 1}, kTerms, 4096) == 0) ++steps;
  EXPECT_LE(steps, 8);
}

TEST(PrefillPace, ScoredRowsPayForTheirLogits) {
  ModelCost model;
  model.shared = {.bytes = 1e8, .f32_macs = 0, .int8_macs = 1e8};
  model.lm_head = {.bytes = 1e8, .f32_macs = 0, .int8_macs = 1e9};
  const CostModel cost(model, {.bytes_per_second = 5e10, .f32_flops = 2e11, .int8_ops = 1e12});
  PrefillPace plain(cost), scored(cost);
  const PrefillPace::Prompt prompt{512, 0}, prompt_scored{512, 0, true};
  EXPECT_GT(plain.rows(answers(4, 0), {&prompt, 1}, kTerms, 512),
            3 * scored.rows(answers(4, 0), {&prompt_scored, 1}, kTerms, 512));
}

TEST(PrefillPace, LimitsAndPromptsInTurn) {
  const CostModel cost = cost_model();
  PrefillPace pace(cost);
  const std::vector<PrefillPace::Prompt> prompts = {{3, 0}, {300, 0}};
  for (int i = 0; i < 10; ++i) {
    EXPECT_LE(pace.rows(answers(1, 0), prompts, kTerms, 7), 7);
    EXPECT_EQ(pace.rows(answers(1, 0), prompts, kTerms, 0), 0);
  }
  const PrefillPace::Prompt last{2, 0};
  EXPECT_EQ(pace.rows(answers(1, 0), {&last, 1}, {.share = 100}, 512),
            2);  // not more than there are
}

}  // namespace
}  // namespace orthrus
