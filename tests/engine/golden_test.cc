// Golden data that goes below the level of tokens: the diffusion view's drafts and the logits
// themselves, all in f32. The diffusion span is run by hand, so that neither acceptance nor the
// decoder can hide a wrong row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/test_models.h"

namespace orthrus {
namespace {

using Ids = std::vector<int32_t>;

/// Tokens with the greatest logits and how far the second best lies below.
struct Choices {
  Ids tokens;
  std::vector<double> gaps;
};

Choices choices_of(std::span<const float> logits, int64_t vocab) {
  Choices choices;
  for (size_t row = 0; row < logits.size(); row += static_cast<size_t>(vocab)) {
    const auto values = logits.subspan(row, static_cast<size_t>(vocab));
    const auto best = std::max_element(values.begin(), values.end());
    float second = -INFINITY;
    for (auto it = values.begin(); it != values.end(); ++it) {
      if (it != best) second = std::max(second, *it);
    }
    choices.tokens.push_back(static_cast<int32_t>(best - values.begin()));
    choices.gaps.push_back(*best - second);
  }
  return choices;
}

/// A sequence in the cache of a generator, fed by hand.
class Sequence {
 public:
  explicit Sequence(Generator& generator) : generator_(generator), table_(generator.block_pool()) {}

  int64_t length() const { return table_.length(); }

  /// Commits the tokens; the logits after the last of them.
  std::span<const float> feed(std::span<const int32_t> tokens) {
    const auto size = static_cast<int64_t>(tokens.size());
    table_.reserve(length() + size);
    const Span span{&table_, View::kAr, tokens, length(), size - 1, size};
    const auto logits = generator_.forward().run(span);
    table_.set_length(length() + size);
    return logits;
  }

  /// What the diffusion view drafts behind `anchor`, the token after those fed.
  Choices draft(int32_t anchor, size_t drafts) {
    Ids block(drafts + 1, kMaskToken);
    block[0] = anchor;
    const Span span{&table_, View::kDiffusion, block, length(), 0, static_cast<int64_t>(drafts)};
    return choices_of(generator_.forward().run(span), generator_.loaded().model.config.vocab_size);
  }

 private:
  Generator& generator_;
  BlockTable table_;
};

/// Prompt and answer in one.
Ids whole(const nlohmann::json& golden, const char* answer) {
  Ids tokens = golden.at("prompt_ids");
  for (int32_t id : golden.at(answer)) tokens.push_back(id);
  return tokens;
}

// Every draft of the first three cycles of the official implementation's runs.
TEST(Golden, DraftsOfTheTinyCheckpoint) {
  Generator generator(tiny_options(WeightFormat::kF32));
  int compared = 0, excused = 0;
  for (const auto& golden : read_jsonl("tiny/generate.jsonl")) {
    const Ids tokens = whole(golden, "dual_ids");
    Sequence sequence(generator);
    size_t anchor = golden.at("prompt_ids").size();
    for (size_t cycle = 0; cycle < golden.at("drafts_first_cycles").size(); ++cycle) {
      const Ids expected = golden["drafts_first_cycles"][cycle];
      const auto fed = static_cast<size_t>(sequence.length());
      sequence.feed(std::span(tokens).subspan(fed, anchor - fed));
      const Choices drafts = sequence.draft(tokens[anchor], expected.size());
      for (size_t i = 0; i < expected.size(); ++i, ++compared) {
        if (drafts.tokens[i] == expected[i]) continue;
        ++excused;
        EXPECT_LT(drafts.gaps[i], 1e-3) << "anchor " << anchor << " draft " << i;
      }
      anchor += golden.at("accepted_per_cycle")[cycle].get<size_t>() + 1;
      if (anchor >= tokens.size()) break;
    }
  }
  std::printf("%d drafts, %d near ties\n", compared, excused);
  EXPECT_GT(compared, 500);
  EXPECT_LE(excused, 2);
}

// The 20 best logits and the logsumexp of all, at up to three steps of each answer. Reached: 7e-5.
TEST(Golden, BestLogitsOfTheDemoModel) {
  LoadOptions load = demo_options(WeightFormat::kF32);
  load.diffusion = false;
  load.adapter.clear();
  Generator generator(load);
  int compared = 0;
  double worst = 0, worst_sum = 0;
  for (const auto& golden : read_jsonl("smollm2/greedy.jsonl")) {
    const Ids tokens = whole(golden, "greedy_ids");
    const size_t prompt = golden.at("prompt_ids").size();
    Sequence sequence(generator);
    for (const auto& top : golden.at("top")) {
      const size_t end = prompt + top.at("step").get<size_t>();
      const auto fed = static_cast<size_t>(sequence.length());
      const auto logits = sequence.feed(std::span(tokens).subspan(fed, end - fed));
      const Ids best = top.at("ids");
      for (size_t i = 0; i < best.size(); ++i, ++compared) {
        const double value = logits[static_cast<size_t>(best[i])];
        worst = std::max(worst, std::abs(value - top.at("logits")[i].get<double>()));
      }
      double sum = 0;
      for (float value : logits) sum += std::exp(static_cast<double>(value) - logits[0]);
      const double logsumexp = std::log(sum) + logits[0];
      worst_sum = std::max(worst_sum, std::abs(logsumexp - top.at("logsumexp").get<double>()));
    }
  }
  std::printf("%d logits: worst error %.2g, of the logsumexp %.2g\n", compared, worst, worst_sum);
  EXPECT_GE(compared, 12 * 2 * 20);
  EXPECT_LT(worst, 5e-4);
  EXPECT_LT(worst_sum, 5e-4);
}

}  // namespace
}  // namespace orthrus
