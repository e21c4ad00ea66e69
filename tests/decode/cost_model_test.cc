#include "decode/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/counter_rng.h"

namespace orthrus {
namespace {

ModelCost small_model() {
  ModelCost cost;
  cost.shared = {.bytes = 8e7, .f32_macs = 4e7, .int8_macs = 0};
  cost.ar = {.bytes = 3e7, .f32_macs = 1.5e7, .int8_macs = 0};
  cost.diffusion = {.bytes = 2e7, .f32_macs = 0, .int8_macs = 2e7};
  cost.lm_head = {.bytes = 5e7, .f32_macs = 2.5e7, .int8_macs = 0};
  cost.kv_bytes_per_token = 1e5;
  return cost;
}
constexpr MachineRates kRates{.bytes_per_second = 1e10, .f32_flops = 1e11, .int8_ops = 4e11};

PassShape ar(int64_t rows, int64_t context = 0) {
  return {.ar_rows = rows,
          .diffusion_rows = 0,
          .logit_rows = rows,
          .context_tokens = context,
          .attended = 0};
}
PassShape diffusion(int64_t rows) {
  return {.ar_rows = 0,
          .diffusion_rows = rows,
          .logit_rows = rows - 1,
          .context_tokens = 0,
          .attended = 0};
}

TEST(CostModel, PredictsFromBytesAndOperations) {
  const CostModel cost(small_model(), kRates);
  // Milliseconds to read, and to compute at 0.85 (f32) or 0.7 (int8) of the peak.
  const auto shared = [](double rows) { return 1e-3 * std::hypot(8.0, rows * 0.8 / 0.85); };
  const auto ar_part = [](double rows) { return 1e-3 * std::hypot(3.0, rows * 0.3 / 0.85); };
  const auto diffusion_part = [](double rows) { return 1e-3 * std::hypot(2.0, rows * 0.1 / 0.7); };
  const auto head = [](double rows) { return 1e-3 * std::hypot(5.0, rows * 0.5 / 0.85); };
  EXPECT_NEAR(cost.predict(ar(1)), shared(1) + ar_part(1) + head(1), 1e-9);
  EXPECT_NEAR(cost.predict(ar(1)), 16e-3, 0.2e-3);  // hardly more than reading takes
  EXPECT_NEAR(cost.predict(ar(1, 1000)), cost.predict(ar(1)) + 10e-3, 1e-9);  // 1e8 bytes of KV
  EXPECT_NEAR(cost.predict(ar(100)), shared(100) + ar_part(100) + head(100), 1e-9);
  EXPECT_NEAR(cost.predict(diffusion(2)), shared(2) + diffusion_part(2) + head(1), 1e-9);
  const PassShape no_logits{
      .ar_rows = 1, .diffusion_rows = 0, .logit_rows = 0, .context_tokens = 0, .attended = 0};
  EXPECT_NEAR(cost.predict(no_logits), shared(1) + ar_part(1), 1e-9);  // the head is not read
  const PassShape mixed{
      .ar_rows = 1, .diffusion_rows = 1, .logit_rows = 2, .context_tokens = 0, .attended = 0};
  // Shared weights are read once.
  EXPECT_NEAR(cost.predict(mixed), shared(2) + ar_part(1) + diffusion_part(1) + head(2), 1e-9);
}

TEST(CostModel, CountsTheAttentionOfEveryRow) {
  PassShape prompt;
  prompt.add(View::kAr, 64, 1, 4000);
  EXPECT_EQ(prompt.ar_rows, 64);
  EXPECT_EQ(prompt.logit_rows, 1);
  EXPECT_EQ(prompt.context_tokens, 4000);               // read once
  EXPECT_EQ(prompt.attended, 64 * 4000 + 64 * 65 / 2);  // a row sees those before it
  PassShape drafts;
  drafts.add(View::kDiffusion, 8, 7, 100, /*sequences=*/3);
  EXPECT_EQ(drafts.diffusion_rows, 24);
  EXPECT_EQ(drafts.logit_rows, 21);
  EXPECT_EQ(drafts.context_tokens, 300);
  EXPECT_EQ(drafts.attended, 3 * (8 * 100 + 8 * 8));  // a block sees itself whole

  ModelCost model = small_model();
  model.attention_macs = 1e5;
  const CostModel cost(model, kRates), without(small_model(), kRates);
  // 4e8 bytes of keys and values; 2e5 operations a row and key, at half the peak.
  const double operations = 2e5 * static_cast<double>(prompt.attended);
  PassShape no_context = prompt;
  no_context.context_tokens = no_context.attended = 0;
  EXPECT_NEAR(cost.predict(prompt) - without.predict(no_context),
              std::hypot(40e-3, operations / (0.5 * 1e11)), 1e-9);
}

TEST(CostModel, LearnsPerKindAndRowCount) {
  CostModel cost(small_model(), kRates);
  const auto observe = [&](const PassShape& shape, double factor) {
    const double analytic = CostModel(small_model(), kRates).predict(shape);
    for (int i = 0; i < 40; ++i) cost.observe(shape, analytic * factor);
    return analytic;
  };
  const double one = observe(ar(1), 1.2), eight = observe(ar(8), 1.8);
  EXPECT_NEAR(cost.predict(ar(1)) / one, 1.2, 0.01);
  EXPECT_NEAR(cost.predict(ar(8)) / eight, 1.8, 0.01);
  // Unseen counts follow the nearest one seen, an unseen kind follows another.
  const CostModel fresh(small_model(), kRates);
  EXPECT_NEAR(cost.predict(ar(3)) / fresh.predict(ar(3)), 1.2, 0.01);
  EXPECT_NEAR(cost.predict(ar(32)) / fresh.predict(ar(32)), 1.8, 0.01);
  EXPECT_NEAR(cost.predict(diffusion(8)) / fresh.predict(diffusion(8)), 1.8, 0.01);
  observe(diffusion(8), 0.9);
  EXPECT_NEAR(cost.predict(diffusion(8)) / fresh.predict(diffusion(8)), 0.9, 0.01);
  EXPECT_NEAR(cost.predict(ar(8)) / eight, 1.8, 0.01);
  // Another context uses what was learned at this one.
  EXPECT_NEAR(cost.predict(ar(1, 500)) / fresh.predict(ar(1, 500)), 1.2, 0.01);
  EXPECT_EQ(cost.observations(ar(1)), 40);
  EXPECT_EQ(cost.observations(ar(2)), 0);
}

// Where only plain steps show that memory has become twice as fast, drafts are expected to have
// become cheaper too: they did not run in the meantime and would never run again otherwise.
TEST(CostModel, FollowsTheMachineWhereOnlyPlainStepsRun) {
  CostModel cost(small_model(), kRates);
  MachineRates fast = kRates;
  fast.bytes_per_second *= 2;
  const CostModel faster(small_model(), fast);
  const double slow_ar = cost.predict(ar(1)), slow_draft = cost.predict(diffusion(4));
  for (int i = 0; i < 50; ++i) {
    cost.observe(ar(1), slow_ar);
    cost.observe(diffusion(4), slow_draft * 1.3);
  }
  for (int i = 0; i < 100; ++i) cost.observe(ar(1), faster.predict(ar(1)));
  EXPECT_NEAR(cost.predict(ar(1)) / faster.predict(ar(1)), 1, 0.01);
  EXPECT_NEAR(cost.predict(diffusion(4)) / (1.3 * faster.predict(diffusion(4))), 1, 0.2);
}

TEST(CostModel, SurvivesANoisyMachine) {
  CostModel cost(small_model(), kRates);
  const double analytic = cost.predict(ar(4));
  for (uint32_t i = 0; i < 300; ++i) {
    const auto bits = philox4x32({i, 0, 0, 0}, {2, 2});
    double seconds = analytic * 1.3 * (0.95 + 0.1 * open_uniform(bits[0]));
    if (bits[1] % 50 == 0) seconds *= 20;  // another program had the cores
    cost.observe(ar(4), seconds);
    if (i > 20) {
      ASSERT_GT(cost.predict(ar(4)) / analytic, 1.2) << i;
      ASSERT_LT(cost.predict(ar(4)) / analytic, 1.5) << i;
    }
  }
}

TEST(CostModel, FollowsALastingChange) {
  CostModel cost(small_model(), kRates);
  const double analytic = cost.predict(ar(4));
  for (int i = 0; i < 100; ++i) cost.observe(ar(4), analytic);
  for (int i = 0; i < 60; ++i) cost.observe(ar(4), 3 * analytic);
  EXPECT_NEAR(cost.predict(ar(4)) / analytic, 3, 0.1);
}

TEST(CostModel, EveryRowCountHasAPlace) {
  CostModel cost(small_model(), kRates);
  double last = 0;
  for (int64_t rows = 1; rows <= 5000; ++rows) {
    const double before = cost.predict(ar(rows));
    EXPECT_GE(before, last);
    last = before;
  }
  for (int64_t rows = 1; rows <= 5000; ++rows) cost.observe(ar(rows), 1);
  for (int64_t rows = 1; rows <= 5000; ++rows) EXPECT_GT(cost.observations(ar(rows)), 0);
}

}  // namespace
}  // namespace orthrus
