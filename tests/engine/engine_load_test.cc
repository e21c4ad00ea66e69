// Many clients at once, each answer compared with the one its request has alone. `make soak` sets
// ORTHRUS_LOAD_REQUESTS=2000.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "engine/engine_requests.h"

namespace orthrus {
namespace {

constexpr int64_t kMaxSeqLen = 320;
constexpr int kClients = 64;

struct Call {
  EngineRequest request;
  Heard heard;
};

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
  AnswerParts answers = generator.answer_parts();
  answers.prefill_chunk = 100;
  Engine engine({answers, generator.forward(), pool}, options);
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
          call.request = random_request(random);
          pause(30);
          const uint64_t id = engine.submit(call.request, call.heard);
          if (random() % 8 == 0) {
            pause(60);
            engine.cancel(id);
          }
          call.heard.ended.wait(false);
        }
      });
    }
    clients.clear();  // joins
  }
  int compared = 0, cancelled = 0;
  int64_t accepted = 0;
  for (const auto& client : calls) {
    for (const Call& call : client) {
      ASSERT_TRUE(call.heard.result) << call.heard.error;
      if (call.heard.result->finish_reason == FinishReason::kCancelled) {
        ++cancelled;
        continue;
      }
      expect_as_alone(call.heard, generator.generate(call.request.prompt, call.request.options,
                                                     nullptr, nullptr, {}));
      ASSERT_FALSE(HasFailure());
      accepted += call.heard.result->accepted;
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
