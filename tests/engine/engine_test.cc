#include "engine/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "engine/engine_requests.h"

namespace orthrus {
namespace {

/// A loaded tiny model, a pool as small as wanted, and engines on it.
class EngineTest : public testing::Test {
 protected:
  static constexpr int64_t kMaxSeqLen = 320;

  Engine make_engine(EngineOptions options = {}, int64_t blocks = 100, int64_t chunk = 48) {
    pool_ = std::make_unique<BlockPool>(generator_.block_pool().layout(), blocks);
    AnswerParts answers = generator_.answer_parts();
    answers.max_seq_len = kMaxSeqLen;
    answers.prefill_chunk = chunk;
    return Engine({answers, generator_.forward(), *pool_}, options);
  }
  void expect_as_alone(const EngineRequest& request, const Heard& heard) {
    orthrus::expect_as_alone(
        heard, generator_.generate(request.prompt, request.options, nullptr, nullptr, {}));
  }

  LoadOptions load_ = [] {
    LoadOptions options = tiny_options(WeightFormat::kBF16);
    options.max_seq_len = kMaxSeqLen;
    options.batch = 16;  // rows of the pass
    return options;
  }();
  Generator generator_{load_};
  std::unique_ptr<BlockPool> pool_;
};

TEST_F(EngineTest, AnswersAreThoseOfEachRequestAlone) {
  // Room for a few requests, which push each other out; or for all.
  for (const int64_t blocks : {12, 130}) {
    for (const PrefillMode mode : {PrefillMode::kMixed, PrefillMode::kSeparate}) {
      EngineOptions options;
      options.prefill_mode = mode;
      options.dynamic_batch = blocks == 130;
      options.dynamic_adjust_interval_ms = 1;
      Engine engine = make_engine(options, blocks);
      std::mt19937 random(static_cast<uint32_t>(blocks));
      struct Call {
        EngineRequest request;
        Heard heard;
      };
      std::deque<Call> requests;
      std::map<size_t, uint64_t> ids;
      int cancelled = 0;
      while (requests.size() < 60 ||
             engine.stats().waiting + engine.stats().prefilling + engine.stats().decoding > 0) {
        while (requests.size() < 60 && random() % 2 == 0) {
          auto& [request, heard] = requests.emplace_back();
          request = random_request(random);
          ids[requests.size() - 1] = engine.submit(request, heard);
        }
        engine.step();
        if (random() % 40 == 0 && !requests.empty()) {
          engine.cancel(ids[random() % requests.size()]);
          ++cancelled;
        }
      }
      EXPECT_GT(cancelled, 3);
      int whole = 0;
      for (const auto& [request, heard] : requests) {
        ASSERT_TRUE(heard.ended);
        if (heard.result && heard.result->finish_reason == FinishReason::kCancelled) continue;
        ++whole;
        expect_as_alone(request, heard);
      }
      EXPECT_GT(whole, 25);
      const EngineStats stats = engine.stats();
      EXPECT_EQ(stats.blocks_in_use, 0);
      EXPECT_GT(stats.prefix_hits, 5);
      if (blocks == 12) {
        EXPECT_GT(stats.preemptions, 0);
      } else {
        EXPECT_EQ(stats.preemptions, 0);
      }
    }
  }
}

TEST_F(EngineTest, TheSecondTurnComputesOnlyWhatIsNew) {
  Engine engine = make_engine();
  std::mt19937 random(5);
  EngineRequest first;
  first.prompt = random_prompt(random, 100);
  first.options.max_new_tokens = 60;
  first.options.ignore_eos = true;
  Heard heard;
  engine.submit(first, heard);
  while (engine.step()) continue;
  ASSERT_TRUE(heard.result);
  EXPECT_EQ(heard.result->cached_tokens, 0);
  EngineRequest second = first;
  second.prompt.insert(second.prompt.end(), heard.result->token_ids.begin(),
                       heard.result->token_ids.end());
  const auto question = random_prompt(random, 20);
  second.prompt.insert(second.prompt.end(), question.begin(), question.end());
  Heard again;
  engine.submit(second, again);
  while (engine.step()) continue;
  expect_as_alone(second, again);
  EXPECT_EQ(again.result->cached_tokens, 128);  // the full blocks of 100 + 59 tokens
  EXPECT_EQ(engine.stats().prefix_hit_tokens, 128);
  // Cached as a whole: its last token runs again.
  EngineRequest same = first;
  same.prompt.resize(64);
  for (const int64_t cached : {0, 0}) {
    Heard third;
    engine.submit(same, third);
    while (engine.step()) continue;
    expect_as_alone(same, third);
    EXPECT_EQ(third.result->cached_tokens, cached);  // one block, and the last token is in it
  }
}

TEST_F(EngineTest, APromptThatManyShareIsReadOnce) {
  for (const int64_t draft_max : {0, 5}) {
    Engine engine = make_engine();
    std::mt19937 random(6);
    EngineRequest request;
    request.prompt = random_prompt(random, 200);
    request.options.max_new_tokens = 5;
    request.options.draft_max = draft_max;
    request.options.sampling.temperature = 1;
    std::deque<Heard> choices(6);
    std::vector<EngineRequest> requests;
    for (Heard& heard : choices) {
      request.options.sampling.choice = static_cast<uint32_t>(requests.size());
      requests.push_back(request);
      engine.submit(request, heard);
    }
    while (engine.step()) continue;
    for (size_t i = 0; i < choices.size(); ++i) {
      expect_as_alone(requests[i], choices[i]);
      EXPECT_EQ(choices[i].result->cached_tokens, i == 0 ? 0 : 192);
    }
  }
}

TEST_F(EngineTest, CancelledTwiceEndsOnce) {
  Engine engine = make_engine();
  struct Counting : Heard {
    void on_done(GenerateResult done) override { ++ends, Heard::on_done(std::move(done)); }
    int ends = 0;
  } heard;
  EngineRequest request;
  request.prompt = {5, 6, 7};
  const uint64_t id = engine.submit(request, heard);
  engine.step();
  engine.cancel(id);
  engine.cancel(id);
  engine.step();
  engine.cancel(id);
  engine.step();
  EXPECT_EQ(heard.ends, 1);
  EXPECT_EQ(heard.result->finish_reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, PassesCarryAnswersAndPromptsTogetherOrApart) {
  for (const PrefillMode mode : {PrefillMode::kMixed, PrefillMode::kSeparate}) {
    EngineOptions options;
    options.prefill_mode = mode;
    Engine engine = make_engine(options);
    std::mt19937 random(1);
    EngineRequest writing, reading;
    writing.prompt = random_prompt(random, 10);
    writing.options.max_new_tokens = 200;
    writing.options.ignore_eos = true;
    writing.options.draft_max = 0;
    reading = writing;
    reading.prompt = random_prompt(random, 250);
    reading.options.max_new_tokens = 1;
    Heard a, b;
    engine.submit(writing, a);
    engine.step();
    engine.submit(reading, b);
    int64_t steps = 0;
    for (; engine.stats().prefilling + engine.stats().waiting > 0; ++steps) engine.step();
    const int64_t written = 1 + steps;  // had every step a row of it
    while (engine.step()) continue;
    expect_as_alone(writing, a);
    expect_as_alone(reading, b);
    EXPECT_GT(steps, 5);  // chunks of 48 rows, fewer beside an answer
    EXPECT_LT(written, 200);
  }
}

TEST_F(EngineTest, AFloodDoesNotShutOutOthers) {
  EngineOptions options;
  options.decode_batch_size = 4;
  options.prefill_batch_size = 4;
  Engine engine = make_engine(options, 24);
  std::mt19937 random(9);
  std::deque<Heard> flood(30);
  EngineRequest request;
  request.client = "flood";
  request.options.max_new_tokens = 100;
  request.options.ignore_eos = true;
  for (Heard& heard : flood) {
    request.prompt = random_prompt(random, 100);
    engine.submit(request, heard);
  }
  for (int i = 0; i < 30; ++i) engine.step();
  request.client = "other";
  Heard other;
  engine.submit(request, other);
  int steps = 0;
  while (other.text.empty() && steps < 1000) engine.step(), ++steps;
  EXPECT_LT(steps, 40);  // its own prompt in small chunks, no answer of the flood waited for
  while (engine.step()) continue;
  expect_as_alone(request, other);
  for (const Heard& heard : flood) EXPECT_TRUE(heard.result);
}

TEST_F(EngineTest, WhatCannotBeServedIsRefusedAndTheOthersGoOn) {
  Engine engine = make_engine();
  std::mt19937 random(2);
  EngineRequest good;
  good.prompt = random_prompt(random, 20);
  good.options.max_new_tokens = 20;
  Heard fine, bad_option, nothing;
  engine.submit(good, fine);
  EngineRequest bad = good;
  bad.prompt.assign(kMaxSeqLen, 5);
  EXPECT_THROW(engine.submit(bad, nothing), Error);
  bad.prompt = {1, 1 << 20};
  EXPECT_THROW(engine.submit(bad, nothing), Error);
  bad = good;
  bad.options.sampling.top_p = 7;
  engine.submit(bad, bad_option);
  EngineRequest none = good;
  none.options.max_new_tokens = 0;
  Heard empty;
  engine.submit(none, empty);
  while (engine.step()) continue;
  expect_as_alone(good, fine);
  EXPECT_NE(bad_option.error.find("top-p"), std::string::npos) << bad_option.error;
  ASSERT_TRUE(empty.result);
  EXPECT_TRUE(empty.result->token_ids.empty());
  EXPECT_FALSE(nothing.ended);
}

TEST_F(EngineTest, RunServesOtherThreadsUntilItIsStopped) {
  Engine engine = make_engine();
  std::jthread thread([&](const std::stop_token& stop) { engine.run(stop); });
  std::vector<std::jthread> clients;
  for (uint32_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(c);
      for (int i = 0; i < 5; ++i) {
        EngineRequest request = random_request(random);
        Heard heard;
        const uint64_t id = engine.submit(request, heard);
        if (i == 2) engine.cancel(id);
        heard.ended.wait(false);
        EXPECT_TRUE(heard.result);
      }
    });
  }
  clients.clear();
  EngineRequest endless;
  endless.prompt = {5, 6, 7};
  endless.options.ignore_eos = true;
  struct Stopping : Heard {
    explicit Stopping(std::jthread& engine_thread) : running(engine_thread) {}
    void on_step(const GenerateResult&) override { running.request_stop(); }
    std::jthread& running;
  } cut_off(thread);
  Heard refused;
  engine.submit(endless, cut_off);
  thread.join();
  ASSERT_TRUE(cut_off.result);
  EXPECT_EQ(cut_off.result->finish_reason, FinishReason::kCancelled);
  EXPECT_THROW(engine.submit(endless, refused), Error);
  engine.step();
  EXPECT_EQ(engine.stats().blocks_in_use, 0);
}

// What a listener throws from on_step ends its request, what a pass throws ends those that took
// part in it; those that wait go on.
TEST_F(EngineTest, AFailureEndsThoseThatTookPartInIt) {
  struct ThrowsInPass : Heard {
    void on_text(std::string_view) override { throw std::bad_alloc(); }
  };
  struct ThrowsBehindIt : Heard {
    void on_step(const GenerateResult&) override { throw std::bad_alloc(); }
  };
  for (const bool in_pass : {false, true}) {
    EngineOptions options;
    options.decode_batch_size = 2;
    options.prefill_batch_size = 1;
    options.dynamic_batch = false;
    Engine engine = make_engine(options);
    ThrowsInPass first;
    ThrowsBehindIt second;
    Heard& throwing = in_pass ? static_cast<Heard&>(first) : second;
    std::mt19937 random(4);
    EngineRequest request;
    request.options.max_new_tokens = 20;
    request.options.ignore_eos = true;
    request.prompt = random_prompt(random, 30);
    engine.submit(request, throwing);
    std::deque<Heard> later(4);
    std::vector<EngineRequest> requests;
    for (Heard& heard : later) {
      request.prompt = random_prompt(random, 30);
      requests.push_back(request);
      engine.submit(request, heard);
    }
    std::jthread thread([&](const std::stop_token& stop) { engine.run(stop); });
    throwing.ended.wait(false);
    for (Heard& heard : later) heard.ended.wait(false);
    thread.request_stop();
    thread.join();
    EXPECT_NE(throwing.error, "");
    int failed = 0;
    for (size_t i = 0; i < later.size(); ++i) {
      if (later[i].error.empty()) {
        expect_as_alone(requests[i], later[i]);
      } else {
        ++failed;
      }
    }
    EXPECT_LE(failed, in_pass ? 2 : 0);  // an answer and a prompt beside the one that threw
    EXPECT_EQ(engine.stats().blocks_in_use, 0);
  }
}

// A client that goes away gives back what it holds within one step.
TEST_F(EngineTest, ACancelledRequestIsGoneAfterOneStep) {
  Engine engine = make_engine();
  std::mt19937 random(5);
  for (const size_t steps : {0, 1, 2, 6}) {  // waiting, in its prompt, in its answer
    EngineRequest request;
    request.prompt = random_prompt(random, 100);
    request.options.ignore_eos = true;
    Heard heard;
    const uint64_t id = engine.submit(request, heard);
    for (size_t i = 0; i < steps; ++i) engine.step();
    engine.cancel(id);
    engine.step();
    EXPECT_TRUE(heard.ended) << steps;
    EXPECT_EQ(engine.stats().blocks_in_use, 0) << steps;
    EXPECT_EQ(engine.stats().waiting + engine.stats().prefilling + engine.stats().decoding, 0);
  }
}

}  // namespace
}  // namespace orthrus
