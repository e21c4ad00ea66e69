// The passes that a decoder plans, and what ends a request before its time.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <tuple>

#include "decode/decoder.h"
#include "decode/fake_model.h"

namespace orthrus {
namespace {

TEST(Decoder, RerunsTheLastTokenOfACachedPrompt) {
  FakeModel fake(32, 8);
  FakeRun run(fake, prompt_of(20, 32));
  run.options.max_new_tokens = 6;
  const Tokens wanted = run.generate().token_ids;
  run.table.set_length(20);  // the whole prompt is still there
  Decoder again(run.setup());
  const Span span = again.plan(100, 1);
  EXPECT_EQ(span.first_position, 19);
  EXPECT_EQ(span.tokens.size(), 1u);
  again.consume(fake.run(span));
  run.drive(again);
  EXPECT_EQ(again.result().token_ids, wanted);
  EXPECT_EQ(again.result().cached_tokens, 19);
}

TEST(Decoder, AsksOnlyForLogitsItUses) {
  FakeModel fake(32, 8);
  FakeRun run(fake, prompt_of(20, 32));
  run.prefill_chunk = 8;
  run.options.draft_max = 5;
  Decoder decoder(run.setup());
  for (const int64_t rows : {8, 8, 4}) {
    ASSERT_TRUE(decoder.in_prefill());
    const Span span = decoder.plan(100, 1);
    EXPECT_EQ(static_cast<int64_t>(span.tokens.size()), rows);
    EXPECT_EQ(span.logits_end - span.logits_begin, rows == 4 ? 1 : 0);
    decoder.consume(fake.run(span));
  }
  EXPECT_FALSE(decoder.in_prefill());
  EXPECT_EQ(decoder.result().forward_passes, 1);
  Span span = decoder.plan(100, 1);
  EXPECT_EQ(span.view, View::kDiffusion);
  EXPECT_EQ(span.first_position, 20);
  EXPECT_EQ(span.tokens.size(), 6u);
  EXPECT_EQ(span.logits_begin, 0);
  EXPECT_EQ(span.logits_end, 5);  // the last position proposes nothing
  decoder.consume(fake.run(span));
  span = decoder.plan(100, 1);
  EXPECT_EQ(span.view, View::kAr);
  EXPECT_EQ(span.first_position, 20);
  EXPECT_EQ(span.tokens.size(), 6u);
  EXPECT_EQ(span.logits_end - span.logits_begin, 6);
}

TEST(Decoder, WantsRowsOfLogitsOnlyWhereTokensAreNotEnough) {
  FakeModel fake(48, 8, 0.1);
  const auto scans = [&](const auto& change) {
    FakeRun run(fake, prompt_of(6, 48));
    run.options.max_new_tokens = 12;
    change(run.options);
    std::set<bool> found;
    fake.spoil = [&](const Span& span, std::vector<float>&) {
      found.insert(span.reader != nullptr);
    };
    run.generate();
    EXPECT_EQ(found.size(), 1u);
    return *found.begin();
  };
  EXPECT_TRUE(scans([](GenerateOptions&) {}));
  EXPECT_TRUE(scans([](GenerateOptions& o) { o.sampling.temperature = 0.8; }));
  EXPECT_TRUE(scans([](GenerateOptions& o) { o.sampling.top_p = 0.5; }));  // greedy all the same
  EXPECT_TRUE(scans([](GenerateOptions& o) { o.consensus = Consensus::kRejection; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.consensus = Consensus::kKl; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.consensus_stats = true; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.logprobs = 0; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.prompt_logprobs = true; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.sampling.repeat_penalty = 1.1; }));
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.sampling.logit_bias = {{3, 1.0}}; }));
  for (const auto filter : {&SamplingOptions::top_p, &SamplingOptions::min_p}) {
    EXPECT_FALSE(
        scans([&](GenerateOptions& o) { o.sampling.temperature = 1, o.sampling.*filter = 0.5; }));
  }
  EXPECT_FALSE(scans([](GenerateOptions& o) { o.sampling.temperature = 1, o.sampling.top_k = 5; }));
}

TEST(Decoder, CutsBlocksToTheRowsItGets) {
  FakeModel fake(48, 8, 0.3);
  const Tokens prompt = prompt_of(13, 48);
  const Tokens wanted = reference_answer(fake, prompt, {}, 40);
  for (const int64_t rows : {1, 2, 3, 5}) {
    FakeRun run(fake, prompt);
    run.options.draft_max = 7;
    run.options.max_new_tokens = 40;
    EXPECT_EQ(run.generate(rows).token_ids, wanted) << rows;
  }
}

// Whenever the cache is lost, between any two passes, or partly kept: the answer and its counters
// are those of an undisturbed run.
TEST(Decoder, LosesItsCacheAndGoesOnAsIfNothingHadHappened) {
  for (const Consensus consensus : {Consensus::kExact, Consensus::kRejection, Consensus::kKl}) {
    FakeModel fake(48, 8, 0.4);
    FakeRun calm(fake, prompt_of(100, 48));
    calm.prefill_chunk = 30;
    calm.options.max_new_tokens = 90;
    calm.options.draft_max = 5;
    calm.options.consensus = consensus;
    calm.options.sampling.temperature = 0.8;
    const GenerateResult wanted = calm.generate();
    ASSERT_GT(wanted.accepted, 10);
    for (const int every : {1, 2, 3, 7}) {
      FakeRun run(fake, prompt_of(100, 48));
      run.prefill_chunk = 30;
      run.options = calm.options;
      Decoder decoder(run.setup());
      int useful = 0;
      for (int64_t lost = 0; !decoder.finished();) {
        decoder.consume(fake.run(decoder.plan(4096, 1)));
        if (decoder.finished() || decoder.in_prefill() || ++useful % every != 0) continue;
        // What stays are as many tokens as a prefix index might have: none, some, all but the last.
        const auto known = static_cast<int64_t>(decoder.tokens().size());
        run.table.set_length(std::min(lost++ % 4 * 40, known - 1));
        decoder.recompute();
        // A cycle must come through in the end, so the next loss waits for one.
        for (int64_t cycles = decoder.result().cycles;
             !decoder.finished() && decoder.result().cycles == cycles;) {
          decoder.consume(fake.run(decoder.plan(4096, 1)));
        }
      }
      EXPECT_EQ(decoder.result().token_ids, wanted.token_ids) << every;
      EXPECT_EQ(decoder.result().accepted_per_cycle, wanted.accepted_per_cycle);
      EXPECT_EQ(decoder.result().drafted, wanted.drafted);
      EXPECT_EQ(decoder.result().forward_passes, wanted.forward_passes);
    }
  }
}

TEST(Decoder, CountsDraftsWhereTheyAreJudged) {
  FakeModel fake(32, 8);
  FakeRun run(fake, prompt_of(20, 32));
  run.options.draft_max = 5;
  run.options.max_new_tokens = 30;
  Decoder decoder(run.setup());
  while (decoder.result().cycles < 2) decoder.consume(fake.run(decoder.plan(100, 1)));
  decoder.consume(fake.run(decoder.plan(100, 1)));  // drafts of which nothing comes
  decoder.cancel();
  EXPECT_EQ(decoder.result().drafted_per_cycle, (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(decoder.result().drafted, 10);
}

TEST(Decoder, RecomputesWithoutLogitsWhatIsDecided) {
  FakeModel fake(32, 8);
  FakeRun run(fake, prompt_of(20, 32));
  run.prefill_chunk = 20;
  run.options.max_new_tokens = 30;
  Decoder decoder(run.setup());
  while (decoder.tokens().size() < 30) decoder.consume(fake.run(decoder.plan(100, 1)));
  const auto known = static_cast<int64_t>(decoder.tokens().size());
  run.table.set_length(0);
  decoder.recompute();
  for (const int64_t rows : {int64_t{20}, known - 1 - 20}) {
    ASSERT_TRUE(decoder.in_prefill());
    const Span span = decoder.plan(100, 1);
    EXPECT_EQ(span.view, View::kAr);
    EXPECT_EQ(static_cast<int64_t>(span.tokens.size()), rows);
    EXPECT_EQ(span.logits_begin, span.logits_end);
    decoder.consume(fake.run(span));
  }
  EXPECT_FALSE(decoder.in_prefill());
  EXPECT_EQ(run.table.length(), known - 1);
}

// What an owner must ask the pool for: never less than what a pass then takes.
TEST(Decoder, SaysWhatCapacityItWants) {
  FakeModel fake(32, 8);
  for (const int64_t draft_max : {0, 7}) {
    FakeRun run(fake, prompt_of(20, 32));
    run.options.draft_max = draft_max;
    run.options.max_new_tokens = 200;
    Decoder decoder(run.setup());
    EXPECT_EQ(run.table.capacity(), 0);
    while (!decoder.finished()) {
      const int64_t wanted = decoder.capacity_wanted();
      EXPECT_EQ(wanted,
                std::min<int64_t>(220, static_cast<int64_t>(decoder.tokens().size()) + 8 + 64));
      decoder.consume(fake.run(decoder.plan(100, 1)));
      EXPECT_LE(run.table.capacity(), blocks_for(wanted) * kKvBlockTokens);
    }
  }
}

TEST(Decoder, IsPlainArWithoutDiffusionView) {
  FakeModel fake(48, 8);
  FakeRun off(fake, prompt_of(3, 48));
  off.options.max_new_tokens = 20;
  off.options.draft_max = 7;
  off.options.use_diffusion_mode = false;
  EXPECT_EQ(off.generate().drafted, 0);
  fake.model().layers[0].diff.reset();
  FakeRun absent(fake, prompt_of(3, 48));
  absent.options.max_new_tokens = 20;
  absent.options.draft_max = 7;
  EXPECT_EQ(absent.generate().drafted, 0);
}

TEST(Decoder, CancelsBetweenPassesAndFromTheSink) {
  FakeModel fake(48, 8);
  FakeRun run(fake, prompt_of(3, 48));
  run.options.draft_max = 7;
  Decoder decoder(run.setup());
  for (int i = 0; i < 4; ++i) decoder.consume(fake.run(decoder.plan(100, 1)));
  const size_t count = decoder.result().token_ids.size();
  const Span span = decoder.plan(100, 1);
  decoder.cancel();
  decoder.consume(fake.run(span));
  EXPECT_TRUE(decoder.finished());
  EXPECT_EQ(decoder.result().finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(decoder.result().token_ids.size(), count);
  EXPECT_EQ(run.table.length(), static_cast<int64_t>(decoder.tokens().size()) - 1);
}

TEST(Decoder, BadLogitsEndTheRequestOrTheDraft) {
  FakeModel fake(48, 8, 0.1);
  const Tokens prompt = prompt_of(6, 48);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tokens wanted = reference_answer(fake, prompt, {}, 30);
  for (const auto& [bad, view, scanned] : {std::tuple{nan, View::kAr, true},
                                           {nan, View::kAr, false},
                                           {inf, View::kAr, true},
                                           {nan, View::kDiffusion, true},
                                           {nan, View::kDiffusion, false},
                                           {inf, View::kDiffusion, true}}) {
    FakeRun run(fake, prompt);
    run.options.max_new_tokens = 30;
    run.options.draft_max = 7;
    run.options.logprobs = scanned ? -1 : 0;
    Decoder decoder(run.setup());
    fake.spoil = [&](const Span& span, std::vector<float>& logits) {
      EXPECT_EQ(span.reader != nullptr, scanned);
      const bool late = decoder.tokens().size() > 12;
      // Row 0 of an AR span, row 2 of a draft.
      const size_t at = view == View::kAr ? 5 : static_cast<size_t>(2 * fake.vocab() + 7);
      if (span.view == view && late && at < logits.size()) logits[at] = bad;
    };
    run.drive(decoder);
    if (view == View::kDiffusion) {
      EXPECT_EQ(decoder.result().token_ids, wanted);
      EXPECT_GT(std::count(decoder.result().accepted_per_cycle.begin(),
                           decoder.result().accepted_per_cycle.end(), 2),
                0);
      continue;
    }
    ASSERT_TRUE(decoder.error().has_value());
    EXPECT_EQ(decoder.error()->kind(), ErrorKind::kInput);
    EXPECT_THROW(decoder.result(), Error);
    const auto known = decoder.tokens();
    EXPECT_TRUE(std::equal(known.begin() + 6, known.end(), wanted.begin()));
  }
}

TEST(Decoder, EverythingBannedIsAnError) {
  FakeModel fake(8, 4);
  FakeRun run(fake, prompt_of(3, 8));
  for (int32_t i = 0; i < 8; ++i) {
    run.options.sampling.logit_bias.push_back({i, -std::numeric_limits<double>::infinity()});
  }
  Decoder decoder(run.setup());
  run.drive(decoder);
  EXPECT_TRUE(decoder.error().has_value());
}

TEST(Decoder, RefusesOptionsOutOfRange) {
  FakeModel fake(16, 4);
  const auto kind_of = [&](auto change) {
    FakeRun run(fake, prompt_of(4, 16));
    change(run);
    try {
      Decoder decoder(run.setup());
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return static_cast<int>(error.kind());
    }
    return -1;
  };
  const int usage = static_cast<int>(ErrorKind::kUsage),
            input = static_cast<int>(ErrorKind::kInput);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.draft_max = 0; }), -1);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.draft_max = -2; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.max_new_tokens = -2; }), usage);
  EXPECT_EQ(kind_of([&](FakeRun& r) { r.options.sampling.temperature = nan; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.temperature = -0.5; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.top_k = -1; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.top_p = 0; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.min_p = 1.5; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.repeat_penalty = 0; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.repeat_last_n = -2; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.options.sampling.logit_bias = {{16, 1.0}}; }), usage);
  EXPECT_EQ(kind_of([&](FakeRun& r) { r.options.sampling.logit_bias = {{1, nan}}; }), usage);
  EXPECT_EQ(kind_of([&](FakeRun& r) { r.options.consensus_threshold = nan; }), usage);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.prompt.assign(5000, 1); }), input);
  EXPECT_EQ(kind_of([](FakeRun& r) { r.prompt.push_back(16); }), input);
}

}  // namespace
}  // namespace orthrus
