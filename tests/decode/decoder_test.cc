#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "decode/fake_model.h"
#include "decode/sampler.h"

namespace orthrus {
namespace {

std::vector<SamplingOptions> settings() {
  std::vector<SamplingOptions> all(7);
  all[1].temperature = 1;
  all[2].temperature = 0.7, all[2].top_k = 12, all[2].top_p = 0.9, all[2].seed = 77;
  all[3].temperature = 1.3, all[3].min_p = 0.05, all[3].seed = 1234567890123456789u,
  all[3].choice = 3;
  all[4].repeat_penalty = 1.3, all[4].repeat_last_n = 16;
  all[5].temperature = 0.8, all[5].repeat_penalty = 1.1, all[5].presence_penalty = 0.4,
  all[5].frequency_penalty = 0.2, all[5].repeat_last_n = -1, all[5].top_p = 0.95;
  all[6].temperature = 0.5,
  all[6].logit_bias = {{3, -std::numeric_limits<double>::infinity()}, {5, 2.5}, {5, 0.5}};
  return all;
}

/// Replays the true continuation; each cycle's number of right drafts is drawn at random.
class ReplayDrafter : public Drafter {
 public:
  ReplayDrafter(Tokens truth, int32_t vocab, uint32_t seed)
      : truth_(std::move(truth)), vocab_(vocab), seed_(seed) {}

  Tokens draft(std::span<const int32_t> tokens, int64_t count) override {
    const auto bits = philox4x32({cycle_++, seed_, 0, 0}, {1, 1});
    const int64_t right = bits[0] % static_cast<uint32_t>(count + 1);
    Tokens drafts;
    for (int64_t i = 0; i < count; ++i) {
      const size_t at = tokens.size() + static_cast<size_t>(i);
      const int32_t truth = at < truth_.size() ? truth_[at] : 0;
      drafts.push_back(i == right ? (truth + 1) % vocab_ : truth);
    }
    return drafts;
  }

 private:
  Tokens truth_;
  int32_t vocab_;
  uint32_t seed_;
  uint32_t cycle_ = 0;
};

class StopAfter : public TokenSink {
 public:
  explicit StopAfter(size_t count) : count_(count) {}
  bool on_token(int32_t token) override {
    tokens.push_back(token);
    return tokens.size() < count_;
  }
  Tokens tokens;

 private:
  size_t count_;
};

TEST(Decoder, WritesThePlainArAnswerWithTheDiffusionView) {
  int64_t accepted = 0, refused = 0;
  for (const double noise : {0.0, 0.5, 3.0}) {
    FakeModel fake(48, 8, noise);
    const Tokens prompt = prompt_of(13, 48);
    for (const SamplingOptions& sampling : settings()) {
      const Tokens wanted = reference_answer(fake, prompt, sampling, 90);
      for (const int64_t draft_max : {0, 1, 2, 7, 31}) {
        for (const int64_t chunk : {1, 7, 64}) {
          FakeRun run(fake, prompt);
          run.options.sampling = sampling;
          run.options.draft_max = draft_max;
          run.options.max_new_tokens = 90;
          run.prefill_chunk = chunk;
          const GenerateResult result = run.generate();
          ASSERT_EQ(result.token_ids, wanted) << "noise " << noise << " draft_max " << draft_max;
          EXPECT_EQ(result.finish_reason, FinishReason::kLength);
          EXPECT_EQ(result.cycles, static_cast<int64_t>(result.accepted_per_cycle.size()));
          ASSERT_EQ(result.drafted_per_cycle.size(), result.accepted_per_cycle.size());
          for (size_t c = 0; c < result.drafted_per_cycle.size(); ++c) {
            EXPECT_GE(result.drafted_per_cycle[c], result.accepted_per_cycle[c]);
          }
          if (draft_max == 0) {
            EXPECT_EQ(result.drafted, 0);
            EXPECT_EQ(result.forward_passes, 90);
          } else {
            EXPECT_EQ(result.forward_passes, 1 + 2 * result.cycles);
            accepted += result.accepted;
            refused += result.drafted - result.accepted;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Decoder, EveryAcceptedLengthGivesTheSameAnswer) {
  FakeModel fake(48, 32);
  const Tokens prompt = prompt_of(5, 48);
  std::array<int64_t, 32> seen{};
  uint32_t seed = 0;
  for (const SamplingOptions& sampling : settings()) {
    const Tokens wanted = reference_answer(fake, prompt, sampling, 700);
    Tokens truth = prompt;
    truth.insert(truth.end(), wanted.begin(), wanted.end());
    for (int repeat = 0; repeat < 3; ++repeat) {
      ReplayDrafter drafter(truth, 48, seed++);
      FakeRun run(fake, prompt);
      run.options.sampling = sampling;
      run.options.draft_max = 31;
      run.options.max_new_tokens = 700;
      run.drafter = &drafter;
      const GenerateResult result = run.generate();
      ASSERT_EQ(result.token_ids, wanted);
      for (const int64_t n : result.accepted_per_cycle) ++seen[static_cast<size_t>(n)];
    }
  }
  for (size_t n = 0; n < seen.size(); ++n) EXPECT_GT(seen[n], 0) << "accepted length " << n;
}

/// The cache holds exactly the committed prefix, so a longer prompt that starts with it may reuse
/// it.
void expect_reusable(FakeRun& run, const Decoder& decoder) {
  const Tokens tokens(decoder.tokens().begin(), decoder.tokens().end());
  ASSERT_LE(run.table.length(), static_cast<int64_t>(tokens.size()));
  ASSERT_GE(run.table.length(), static_cast<int64_t>(tokens.size()) - 1);
  FakeRun next(run.fake, tokens);
  next.prompt.push_back(1);
  next.options = run.options;
  next.options.max_new_tokens = 4;
  const Tokens wanted = reference_answer(run.fake, next.prompt, run.options.sampling, 4);
  Decoder::Setup setup = next.setup();
  setup.table = &run.table;
  const int64_t cached = run.table.length();
  Decoder follower(setup);
  EXPECT_EQ(follower.result().cached_tokens, cached);
  next.drive(follower);
  EXPECT_EQ(follower.result().token_ids, wanted);
}

TEST(Decoder, EndsInsideAnAcceptedRun) {
  FakeModel fake(64, 16);
  const Tokens prompt = prompt_of(9, 64);
  int64_t eos_inside = 0, stop_inside = 0, limit_inside = 0, at_bonus = 0;
  for (const SamplingOptions& sampling : settings()) {
    const Tokens answer = reference_answer(fake, prompt, sampling, 60);
    Tokens truth = prompt;
    truth.insert(truth.end(), answer.begin(), answer.end());
    for (size_t length = 1; length <= 40; ++length) {
      const Tokens wanted(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(length));
      const bool first_time = std::count(wanted.begin(), wanted.end(), wanted.back()) == 1;
      for (const int how : {0, 1, 2}) {  // eos, sink, limit
        if (how == 0 && !first_time) continue;
        ReplayDrafter drafter(truth, 64, static_cast<uint32_t>(length));
        StopAfter sink(how == 1 ? length : 1000);
        FakeRun run(fake, prompt);
        run.options.sampling = sampling;
        run.options.draft_max = 15;
        run.options.max_new_tokens = how == 2 ? static_cast<int64_t>(length) : -1;
        run.sink = &sink;
        run.drafter = &drafter;
        if (how == 0) run.eos = {63 + 1000, wanted.back()};
        Decoder decoder(run.setup());
        run.drive(decoder);
        const GenerateResult& result = decoder.result();
        ASSERT_EQ(result.token_ids, wanted);
        ASSERT_EQ(sink.tokens, wanted);
        EXPECT_EQ(result.finish_reason, how == 2 ? FinishReason::kLength : FinishReason::kStop);
        // Every decoded token but the first is an accepted draft or ends its cycle.
        const int64_t decoded = static_cast<int64_t>(length) - 1;
        const bool inside = result.accepted + result.cycles == decoded + 1;
        ASSERT_TRUE(inside || result.accepted + result.cycles == decoded);
        (how == 0 ? eos_inside : how == 1 ? stop_inside : limit_inside) += inside;
        at_bonus += !inside;
        expect_reusable(run, decoder);
      }
    }
  }
  EXPECT_GT(eos_inside, 10);
  EXPECT_GT(stop_inside, 10);
  EXPECT_GT(limit_inside, 10);
  EXPECT_GT(at_bonus, 10);
}

TEST(Decoder, IgnoresEosWhereAsked) {
  FakeModel fake(32, 8, 0.5);
  FakeRun run(fake, prompt_of(4, 32));
  run.options.max_new_tokens = 50;
  run.options.ignore_eos = true;
  for (int32_t token = 0; token < 32; ++token) run.eos.push_back(token);
  EXPECT_EQ(run.generate().token_ids.size(), 50u);
  FakeRun stopped(fake, prompt_of(4, 32));
  stopped.eos = run.eos;
  EXPECT_EQ(stopped.generate().token_ids.size(), 1u);
}

TEST(Decoder, StopsAtTheContextLimitAndReservesTheSameCacheInBothViews) {
  FakeModel fake(32, 8, 0.2);
  for (const int64_t limit : {11, 12, 13, 63, 64, 65, 130}) {
    std::vector<size_t> bytes;
    for (const int64_t draft_max : {0, 7}) {
      FakeRun run(fake, prompt_of(10, 32));
      run.max_seq_len = limit;
      run.options.draft_max = draft_max;
      const GenerateResult result = run.generate();
      EXPECT_EQ(static_cast<int64_t>(result.token_ids.size()), limit - 10);
      EXPECT_EQ(result.finish_reason, FinishReason::kLength);
      EXPECT_LE(run.table.capacity(),
                (limit + kKvBlockTokens - 1) / kKvBlockTokens * kKvBlockTokens);
      bytes.push_back(run.table.bytes());
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

TEST(Decoder, ReservesTheSameCacheWhereverTheAnswerEnds) {
  FakeModel fake(32, 32, 0.2);
  for (size_t length = 30; length < 130; ++length) {
    std::vector<size_t> bytes;
    for (const int64_t draft_max : {0, 31}) {
      StopAfter sink(length);
      FakeRun run(fake, prompt_of(10, 32));
      run.sink = &sink;
      run.options.draft_max = draft_max;
      run.generate();
      bytes.push_back(run.table.bytes());
    }
    ASSERT_EQ(bytes[0], bytes[1]) << length;
  }
}

TEST(Decoder, NothingToGenerate) {
  FakeModel fake(32, 8);
  FakeRun full(fake, prompt_of(10, 32));
  full.max_seq_len = 10;
  EXPECT_TRUE(full.generate().token_ids.empty());
  FakeRun none(fake, prompt_of(10, 32));
  none.options.max_new_tokens = 0;
  EXPECT_TRUE(none.generate().token_ids.empty());
  EXPECT_EQ(none.generate().finish_reason, FinishReason::kLength);
}

TEST(Decoder, AutomaticLengthKeepsTheAnswer) {
  ModelCost costs;
  costs.shared = {.bytes = 1e8, .f32_macs = 5e7, .int8_macs = 0};
  for (const double noise : {0.1, 5.0}) {
    FakeModel fake(48, 16, noise);
    const Tokens prompt = prompt_of(13, 48);
    CostModel cost(costs, {.bytes_per_second = 1e10, .f32_flops = 1e11, .int8_ops = 1e11});
    for (const SamplingOptions& sampling : settings()) {
      FakeRun run(fake, prompt);
      run.options.sampling = sampling;
      run.options.max_new_tokens = 200;
      run.options.draft_max = -1;
      run.cost = &cost;
      Decoder decoder(run.setup());
      while (!decoder.finished()) {
        const Span span = decoder.plan(100, 1);
        decoder.consume(fake.run(span));
        PassShape shape;
        (span.view == View::kAr ? shape.ar_rows : shape.diffusion_rows) =
            static_cast<int64_t>(span.tokens.size());
        cost.observe(shape, cost.predict(shape));
      }
      EXPECT_EQ(decoder.result().token_ids, reference_answer(fake, prompt, sampling, 200));
      if (noise < 1 && sampling.temperature == 0) {
        EXPECT_GT(decoder.result().accepted, 50);
      }
    }
  }
}

// As the end of sequence, also where that is ignored; but the sink never hears of it.
TEST(Decoder, StopTokensEndTheAnswer) {
  FakeModel fake(48, 8, 0.3);
  const Tokens prompt = prompt_of(13, 48);
  const Tokens whole = reference_answer(fake, prompt, {}, 40);
  const int32_t stop = whole[20];
  const auto first = std::find(whole.begin(), whole.end(), stop) - whole.begin();
  for (const bool ignore_eos : {false, true}) {
    for (const int64_t draft_max : {0, 7}) {
      FakeRun run(fake, prompt);
      StopAfter sink(1000);
      run.sink = &sink;
      run.options.draft_max = draft_max;
      run.options.max_new_tokens = 40;
      run.options.ignore_eos = ignore_eos;
      run.options.stop_token_ids = {47, stop};
      if (std::find(whole.begin(), whole.end(), 47) != whole.end())
        run.options.stop_token_ids = {stop};
      const GenerateResult result = run.generate();
      EXPECT_EQ(result.token_ids, Tokens(whole.begin(), whole.begin() + first + 1));
      EXPECT_EQ(sink.tokens, Tokens(whole.begin(), whole.begin() + first));
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
    }
  }
  FakeRun run(fake, prompt);
  run.options.stop_token_ids = {48};
  EXPECT_THROW(run.generate(), Error);
}

}  // namespace
}  // namespace orthrus
