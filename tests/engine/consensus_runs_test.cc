// The consensus rules through whole generations of the tiny checkpoint, whose diffusion view is
// trained: drafts are accepted and refused.

#include <gtest/gtest.h>

#include "engine/generator.h"
#include "engine/test_models.h"

namespace orthrus {
namespace {

constexpr int64_t kFullBlock = 7;  // drafts of the checkpoint's blocks of 8 rows

std::vector<std::vector<int32_t>> prompts(size_t count) {
  auto goldens = read_jsonl("tiny/generate.jsonl");
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(goldens.at(i).at("prompt_ids").get<std::vector<int32_t>>());
  }
  return all;
}

GenerateOptions with_rule(Consensus consensus, double temperature, int64_t draft_max = kFullBlock) {
  GenerateOptions options;
  options.consensus = consensus;
  options.sampling.temperature = temperature;
  options.sampling.seed = 21;
  options.draft_max = draft_max;
  options.max_new_tokens = 60;
  return options;
}

GenerateResult run(Generator& generator, const std::vector<int32_t>& prompt,
                   const GenerateOptions& options) {
  return generator.generate(prompt, options, nullptr, nullptr, {});
}

/// Requests that join and leave the shared passes at different times.
std::vector<BatchRequest> rejection_requests() {
  std::vector<BatchRequest> requests;
  for (std::vector<int32_t>& prompt : prompts(9)) {
    BatchRequest request;
    const size_t i = requests.size();
    request.input_ids = std::move(prompt);
    request.options = with_rule(Consensus::kRejection, 0.9);
    request.options.draft_max = std::vector<int64_t>{kFullBlock, -1, 3}[i % 3];
    request.options.max_new_tokens = 20 + 15 * static_cast<int64_t>(i % 4);
    request.options.sampling.seed = 100 + i;
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<GenerateResult> run_batch(Generator& generator,
                                      const std::vector<BatchRequest>& requests) {
  std::vector<GenerateResult> results(requests.size());
  generator.generate_batch(
      requests, [&](size_t i, GenerateResult result) { results[i] = std::move(result); },
      [](size_t i, const std::string& message) { ADD_FAILURE() << i << ": " << message; }, {});
  return results;
}

TEST(ConsensusRuns, RejectionSaysTheSameWithAnyThreadsChunksAndBatch) {
  const std::vector<BatchRequest> requests = rejection_requests();
  std::vector<GenerateResult> expected;
  {
    Generator generator(tiny_options(WeightFormat::kBF16, 1));
    int64_t accepted = 0, drafted = 0;
    bool differs_from_exact = false;
    for (const BatchRequest& request : requests) {
      expected.push_back(run(generator, request.input_ids, request.options));
      accepted += expected.back().accepted;
      drafted += expected.back().drafted;
      GenerateOptions exact = request.options;
      exact.consensus = Consensus::kExact;
      differs_from_exact |=
          run(generator, request.input_ids, exact).token_ids != expected.back().token_ids;
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, drafted);
    EXPECT_TRUE(differs_from_exact);
  }
  for (const int threads : {1, 2, 3}) {
    for (const int64_t chunk : {512, 1, 7, 64}) {
      LoadOptions load = tiny_options(WeightFormat::kBF16, threads, chunk);
      load.batch = 4;
      Generator generator(load);
      const std::vector<GenerateResult> batch = run_batch(generator, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        const std::string where = "request " + std::to_string(i) + ", " + std::to_string(threads) +
                                  " threads, chunk " + std::to_string(chunk);
        EXPECT_EQ(run(generator, requests[i].input_ids, requests[i].options).token_ids,
                  expected[i].token_ids)
            << where;
        EXPECT_EQ(batch[i].token_ids, expected[i].token_ids) << where << ", batch";
        EXPECT_EQ(batch[i].accepted_per_cycle, expected[i].accepted_per_cycle) << where;
      }
    }
  }
}

// The text of these rules depends on the borders of the blocks (shown with shorter ones).
TEST(ConsensusRuns, AutomaticLengthIsTheFullBlockInRejectionAndKl) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  for (const Consensus rule : {Consensus::kRejection, Consensus::kKl}) {
    bool borders_matter = false;
    for (const auto& prompt : prompts(6)) {
      GenerateOptions options = with_rule(rule, 0.9);
      options.consensus_threshold = 0.5;
      const GenerateResult full = run(generator, prompt, options);
      options.draft_max = -1;
      const GenerateResult automatic = run(generator, prompt, options);
      EXPECT_EQ(automatic.token_ids, full.token_ids);
      EXPECT_EQ(automatic.accepted_per_cycle, full.accepted_per_cycle);
      EXPECT_EQ(automatic.drafted, full.drafted);
      options.draft_max = 2;
      borders_matter |= run(generator, prompt, options).token_ids != full.token_ids;
    }
    EXPECT_TRUE(borders_matter);
  }
}

TEST(ConsensusRuns, KlOfThresholdZeroIsExact) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  for (const double temperature : {0.0, 0.9}) {
    int64_t accepted = 0;
    for (const auto& prompt : prompts(6)) {
      const GenerateResult exact =
          run(generator, prompt, with_rule(Consensus::kExact, temperature));
      GenerateOptions options = with_rule(Consensus::kKl, temperature);
      options.consensus_threshold = 0;
      const GenerateResult kl = run(generator, prompt, options);
      EXPECT_EQ(kl.token_ids, exact.token_ids);
      EXPECT_EQ(kl.accepted_per_cycle, exact.accepted_per_cycle);
      EXPECT_EQ(kl.conflict_rate, 1);
      options.use_diffusion_mode = false;
      EXPECT_EQ(run(generator, prompt, options).token_ids, exact.token_ids);
      accepted += kl.accepted;
    }
    EXPECT_GT(accepted, 0);
  }
}

TEST(ConsensusRuns, KlOfAHugeThresholdTakesEveryDraft) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  for (const double temperature : {0.0, 0.9}) {
    bool differs_from_exact = false;
    for (const auto& prompt : prompts(6)) {
      GenerateOptions options = with_rule(Consensus::kKl, temperature);
      options.consensus_threshold = 1e9;
      options.ignore_eos = true;  // which would end the text inside a block
      const GenerateResult kl = run(generator, prompt, options);
      // One token of the prefill, 7 cycles of 7 drafts and one token, 3 drafts up to the limit.
      EXPECT_EQ(kl.accepted_per_cycle, (std::vector<int64_t>{7, 7, 7, 7, 7, 7, 7, 3}));
      EXPECT_EQ(kl.drafted, kl.accepted);
      EXPECT_EQ(kl.conflict_rate, 0);
      options.consensus = Consensus::kExact;
      differs_from_exact |= run(generator, prompt, options).token_ids != kl.token_ids;
    }
    EXPECT_TRUE(differs_from_exact);
  }
}

}  // namespace
}  // namespace orthrus
