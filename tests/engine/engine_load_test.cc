// Many clients at once, each answer compared with the one its request has alone. `make soak` sets
// ORTHRUS_LOAD_REQUESTS=2000.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/test_models.h"

namespace orthrus {
namespace {

constexpr int64_t kMaxSeqLen = 320;
constexpr int kClients = 64;

struct Call : EngineListener {
  void on_text(std::string_view piece) override { text += piece; }
  void on_done(GenerateResult done) override { result = std::move(done), end(); }
  void on_failed(const Error&) override { end(); }
  void end() {
    ended = true;
    ended.notify_one();
  }

  EngineRequest request;
  std::string text;
  std::optional<GenerateResult> result;
  std::atomic<bool> ended = false;
};

EngineRequest random_request(std::mt19937& random, int client) {
  EngineRequest request;
  std::mt19937 beginning(random() % 5);  // few beginnings, which many share
  const size_t size = 1 + random() % 240;
  for (size_t i = 0; i < size; ++i) {
    std::mt19937& source = i < 128 && size > 128 ? beginning : random;
    request.prompt.push_back(static_cast<int32_t>(3 + source() % 1000));
  }
  request.client = std::to_string(client % 7);
  request.priority = static_cast<int>(random() % 3);
  request.options.max_new_tokens = static_cast<int64_t>(1 + random() % 60);
  request.options.draft_max = std::vector<int64_t>{-1, -1, 7, 2, 0}[random() % 5];
  request.options.ignore_eos = random() % 2;
  SamplingOptions& sampling = request.options.sampling;
  sampling.temperature = std::vector<double>{0, 0.7, 1.2}[random() % 3];
  sampling.seed = random();
  if (random() % 3 == 0) sampling.top_p = 0.9;
  if (random() % 5 == 0) sampling.repeat_penalty = 1.2;
  return request;
}

TEST(EngineLoad, EachAnswerIsThatOfItsRequestAlone) {
  const char* asked = std::getenv("ORTHRUS_LOAD_REQUESTS");
  const int requests = asked ? std::atoi(asked) : 256;
  LoadOptions load = tiny_options(WeightFormat::kQ8);
  load.max_seq_len = kMaxSeqLen;
  load.batch = 16;
  Generator generator(load);
  BlockPool pool(generator.block_pool().layout(), 40);  // a third of what all together want
  EngineOptions options;
  options.decode_batch_size = 16;
  options.dynamic_adjust_interval_ms = 20;
  Engine engine({generator.loaded(), generator.forward(), generator.cost_model(), pool, kMaxSeqLen,
                 /*prefill_chunk=*/100},
                options);
  std::vector<std::deque<Call>> calls(kClients);
  {
    std::jthread serving([&](const std::stop_token& stop) { engine.run(stop); });
    std::vector<std::jthread> clients;
    for (int c = 0; c < kClients; ++c) {
      clients.emplace_back([&, c] {
        std::mt19937 random(static_cast<uint32_t>(c));
        const auto pause = [&](uint32_t most) {
          std::this_thread::sleep_for(std::chrono::milliseconds(random() % most));
        };
        for (int i = c; i < requests; i += kClients) {
          Call& call = calls[static_cast<size_t>(c)].emplace_back();
          call.request = random_request(random, c);
          pause(30);
          const uint64_t id = engine.submit(call.request, call);
          if (random() % 8 == 0) {
            pause(60);
            engine.cancel(id);
          }
          call.ended.wait(false);
        }
      });
    }
    clients.clear();  // joins
  }
  int compared = 0, cancelled = 0;
  int64_t accepted = 0;
  for (const auto& client : calls) {
    for (const Call& call : client) {
      ASSERT_TRUE(call.result);
      if (call.result->finish_reason == FinishReason::kCancelled) {
        ++cancelled;
        continue;
      }
      const GenerateResult alone =
          generator.generate(call.request.prompt, call.request.options, nullptr, nullptr, {});
      ASSERT_EQ(call.result->token_ids, alone.token_ids);
      ASSERT_EQ(call.text, alone.text);
      accepted += call.result->accepted;
      ++compared;
    }
  }
  const EngineStats stats = engine.stats();
  std::printf("%d answers compared, %d cancelled; %ld preemptions, %ld prefix hits, %ld steps\n",
              compared, cancelled, static_cast<long>(stats.preemptions),
              static_cast<long>(stats.prefix_hits), static_cast<long>(stats.steps));
  EXPECT_GT(compared, requests * 3 / 4);
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(accepted, 0);
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(stats.prefix_hits, 0);
  EXPECT_EQ(stats.blocks_in_use, 0);
}

}  // namespace
}  // namespace orthrus
