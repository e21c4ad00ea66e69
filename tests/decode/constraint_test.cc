// Masks on both views.
#include <gtest/gtest.h>

#include "decode/fake_model.h"
#include "decode/least_tokens.h"

namespace orthrus {
namespace {

constexpr int64_t kVocab = 100;

/// Every third token may follow, which ones depends on the sum of the answer so far. `words` cover
/// the first `known` tokens; nothing is masked while the answer has fewer than `free` tokens.
class EveryThird : public TokenConstraint {
 public:
  explicit EveryThird(int64_t known = kVocab, size_t free = 0) : known_(known), free_(free) {}
  std::span<const uint64_t> allowed(std::span<const int32_t> answer) override {
    if (answer.size() < free_) return {};
    words_.assign(static_cast<size_t>((known_ + 63) / 64), 0);
    for (int64_t t = 0; t < known_; ++t) {
      if (allows(answer, t)) words_[static_cast<size_t>(t / 64)] |= uint64_t{1} << (t % 64);
    }
    return words_;
  }
  static bool allows(std::span<const int32_t> answer, int64_t token) {
    int64_t sum = 0;
    for (const int32_t t : answer) sum += t;
    return (sum + token) % 3 == 0;
  }

 private:
  int64_t known_;
  size_t free_;
  std::vector<uint64_t> words_;
};

TEST(Constraint, MasksBothViewsAndDraftsAreAccepted) {
  for (const int64_t known : {kVocab, int64_t{70}, int64_t{64}}) {
    for (const size_t free : {0, 5}) {
      for (const double temperature : {0.0, 0.8}) {
        FakeModel fake(kVocab, 8, 0.3);
        FakeRun run(fake, prompt_of(9, kVocab));
        EveryThird alone(known, free), shared(known, free);
        run.options.sampling.temperature = temperature;
        run.options.max_new_tokens = 60;
        run.constraint = &shared;
        const GenerateResult result = run.generate();
        EXPECT_EQ(result.token_ids,
                  reference_answer(fake, run.prompt, run.options.sampling, 60, &alone));
        EXPECT_GT(result.accepted, 20);
        const std::span<const int32_t> answer(result.token_ids);
        for (size_t i = free; i < answer.size(); ++i) {
          EXPECT_TRUE(EveryThird::allows(answer.first(i), answer[i]));
          EXPECT_LT(answer[i], known);
        }
      }
    }
  }
}

TEST(Constraint, HoldsForTheOtherRulesToo) {
  for (const Consensus consensus : {Consensus::kKl, Consensus::kRejection}) {
    FakeModel fake(kVocab, 8, 0.3);
    FakeRun run(fake, prompt_of(9, kVocab));
    EveryThird constraint;
    run.options.consensus = consensus;
    run.options.consensus_threshold = 0.5;
    run.options.sampling.temperature = 1;
    run.options.max_new_tokens = 60;
    run.constraint = &constraint;
    const GenerateResult result = run.generate();
    ASSERT_EQ(result.token_ids.size(), 60u);
    EXPECT_GT(result.accepted, 5);
    const std::span<const int32_t> answer(result.token_ids);
    for (size_t i = 0; i < answer.size(); ++i) {
      EXPECT_TRUE(EveryThird::allows(answer.first(i), answer[i]));
    }
  }
}

// Nearly every token ends the answer: what is written before may not be one of them.
TEST(Constraint, NoEndBeforeTheLeastTokens) {
  FakeModel fake(kVocab, 8, 0.3);
  for (const double temperature : {0.0, 0.8}) {
    FakeRun run(fake, prompt_of(9, kVocab));
    for (int32_t token = 0; token < 90; ++token) run.eos.push_back(token);
    run.options.sampling.temperature = temperature;
    run.options.max_new_tokens = 60;
    const GenerateResult soon = run.generate();
    EXPECT_LT(soon.token_ids.size(), 20u);
    for (const size_t least : {25, 26, 27}) {
      LeastTokens least_tokens(static_cast<int64_t>(least), run.eos, kVocab);
      LeastTokens alone(static_cast<int64_t>(least), run.eos, kVocab);
      FakeRun again(fake, run.prompt);
      again.eos = run.eos;
      again.options = run.options;
      again.constraint = &least_tokens;
      const GenerateResult result = again.generate();
      ASSERT_GT(result.token_ids.size(), least);
      for (size_t i = 0; i < result.token_ids.size(); ++i) {
        EXPECT_EQ(result.token_ids[i] < 90, i + 1 == result.token_ids.size()) << i;
      }
      EXPECT_EQ(result.token_ids,
                reference_answer(fake, run.prompt, run.options.sampling,
                                 static_cast<int64_t>(result.token_ids.size()), &alone));
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
      EXPECT_GT(result.accepted, 5);
    }
  }
}

TEST(Constraint, NothingAllowedIsAnErrorOfThisAnswer) {
  struct Nothing : TokenConstraint {
    std::span<const uint64_t> allowed(std::span<const int32_t>) override { return words; }
    std::vector<uint64_t> words = {0, 0};
  };
  FakeModel fake(kVocab, 8);
  FakeRun run(fake, prompt_of(9, kVocab));
  Nothing nothing;
  run.constraint = &nothing;
  Decoder decoder(run.setup());
  run.drive(decoder);
  ASSERT_TRUE(decoder.error());
  EXPECT_NE(std::string(decoder.error()->what()).find("no token can follow at position 9"),
            std::string::npos);
}

}  // namespace
}  // namespace orthrus
