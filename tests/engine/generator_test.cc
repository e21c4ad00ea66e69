#include "engine/generator.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <thread>

#include "engine/test_models.h"

namespace orthrus {
namespace {

/// Drafts the true continuation with errors: at random places, or, with the rate kOneError, one a
/// cycle, each time at another place.
class ReplayDrafter : public Drafter {
 public:
  static constexpr double kOneError = -1;

  ReplayDrafter(std::vector<int32_t> truth, size_t prompt, double error_rate, uint64_t seed)
      : truth_(std::move(truth)),
        prompt_(prompt),
        error_rate_(error_rate),
        cycle_(seed),
        random_(seed) {}

  std::vector<int32_t> draft(std::span<const int32_t> tokens, int64_t count) override {
    std::vector<int32_t> drafts;
    const size_t next = tokens.size() - prompt_;
    const size_t place = cycle_++ * 7 % 32;  // all of 0 to 31 in 32 cycles; 31: behind the last
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int32_t token = next + i < truth_.size() ? truth_[next + i] : 1;
      drafts.push_back(is_error(i == place) ? token ^ 1 : token);
    }
    return drafts;
  }

 private:
  bool is_error(bool at_place) {
    return error_rate_ == kOneError ? at_place : std::bernoulli_distribution(error_rate_)(random_);
  }

  std::vector<int32_t> truth_;
  size_t prompt_;
  double error_rate_;
  size_t cycle_;
  std::mt19937_64 random_;
};

std::vector<int32_t> ids(const nlohmann::json& value) { return value.get<std::vector<int32_t>>(); }

/// The accepted drafts of the official run. It counts drafts behind the end of sequence in the last
/// cycle, which never leave: that cycle is cut to the tokens that do.
std::vector<int64_t> golden_accepted(const nlohmann::json& golden) {
  auto accepted = golden.at("accepted_per_cycle").get<std::vector<int64_t>>();
  int64_t left =
      static_cast<int64_t>(golden.at("dual_ids").size()) - 1;  // the first is the prefill's
  for (int64_t& a : accepted) {
    a = std::min(a, left);
    left -= a + 1;
  }
  return accepted;
}

// tiny/generate.jsonl: outputs and accepted drafts of the official implementation, float32.
TEST(Generator, TinyCheckpointMatchesTheOfficialImplementation) {
  Generator generator(tiny_options(WeightFormat::kF32));
  int64_t accepted = 0, cycles = 0, golden_sum = 0, golden_cycles = 0;
  int equal = 0, total = 0;
  for (const auto& golden : read_jsonl("tiny/generate.jsonl")) {
    GenerateOptions options;
    options.max_new_tokens = golden.at("max_new_tokens");
    options.draft_max = 7;
    const auto prompt = ids(golden.at("prompt_ids"));
    const GenerateResult dual = generator.generate(prompt, options, nullptr, nullptr, {});
    options.use_diffusion_mode = false;
    const GenerateResult ar = generator.generate(prompt, options, nullptr, nullptr, {});
    EXPECT_EQ(dual.token_ids, ar.token_ids);
    const auto expected = ids(golden.at("dual_ids"));
    const auto differ =
        std::mismatch(expected.begin(), expected.end(), ar.token_ids.begin(), ar.token_ids.end());
    const auto at = static_cast<size_t>(differ.first - expected.begin());
    ++total;
    if (ar.token_ids == expected) {
      ++equal;
    } else {
      const auto gaps = golden.at("ar_top1_gap").get<std::vector<double>>();
      ASSERT_LT(at, gaps.size());
      EXPECT_LT(gaps[at], 1e-3) << "prompt " << total << " differs at " << at;
    }
    accepted += dual.accepted;
    cycles += dual.cycles;
    const auto expected_accepted = golden_accepted(golden);
    for (int64_t a : expected_accepted) golden_sum += a, ++golden_cycles;
    EXPECT_EQ(dual.accepted_per_cycle, expected_accepted) << "prompt " << total;
  }
  std::printf("tokens per cycle %.4f, golden %.4f; %d of %d outputs equal\n",
              1.0 + static_cast<double>(accepted) / static_cast<double>(cycles),
              1.0 + static_cast<double>(golden_sum) / static_cast<double>(golden_cycles), equal,
              total);
  EXPECT_EQ(accepted, golden_sum);
  EXPECT_EQ(cycles, golden_cycles);
}

double tiny_tokens_per_cycle(WeightFormat format) {
  Generator generator(tiny_options(format));
  int64_t accepted = 0, cycles = 0;
  for (const auto& golden : read_jsonl("tiny/generate.jsonl")) {
    GenerateOptions options;
    options.max_new_tokens = golden.at("max_new_tokens");
    options.draft_max = 7;
    const auto result =
        generator.generate(ids(golden.at("prompt_ids")), options, nullptr, nullptr, {});
    accepted += result.accepted;
    cycles += result.cycles;
  }
  return 1.0 + static_cast<double>(accepted) / static_cast<double>(cycles);
}

// A broken drafter never shows in the text: acceptance is guarded on trained weights.
TEST(Generator, AcceptanceGuardOnTheTinyCheckpoint) {
  const double f32 = tiny_tokens_per_cycle(WeightFormat::kF32);
  const double bf16 = tiny_tokens_per_cycle(WeightFormat::kBF16);
  const double q8 = tiny_tokens_per_cycle(WeightFormat::kQ8);
  const double q4 = tiny_tokens_per_cycle(WeightFormat::kQ4);
  std::printf("tokens per cycle: f32 %.3f bf16 %.3f q8 %.3f q4 %.3f\n", f32, bf16, q8, q4);
  EXPECT_NEAR(f32, 2.836, 0.005);  // 2.87 with the drafts behind the end of sequence
  EXPECT_NEAR(bf16, f32, 0.03 * f32);
  EXPECT_NEAR(q8, f32, 0.10 * f32);
}

// smollm2/greedy.jsonl: the demo GGUF in float32; near ties (NUMERICS 12) excused.
TEST(Generator, DemoModelMatchesGreedyGoldens) {
  Generator generator(demo_options(WeightFormat::kF32));
  int excused = 0, total = 0;
  for (const auto& golden : read_jsonl("smollm2/greedy.jsonl")) {
    GenerateOptions options;
    options.max_new_tokens = static_cast<int64_t>(golden.at("greedy_ids").size());
    const auto expected = ids(golden.at("greedy_ids"));
    const auto result =
        generator.generate(ids(golden.at("prompt_ids")), options, nullptr, nullptr, {});
    ++total;
    if (result.token_ids == expected) continue;
    const auto at =
        static_cast<size_t>(std::mismatch(expected.begin(), expected.end(),
                                          result.token_ids.begin(), result.token_ids.end())
                                .first -
                            expected.begin());
    ASSERT_LT(at, expected.size());
    EXPECT_LT(golden.at("top1_gap")[at].get<double>(), 0.02)
        << "prompt " << total << " token " << at;
    ++excused;
  }
  EXPECT_EQ(total, 12);
  EXPECT_LE(excused, 2);
}

/// Whether the last token that left was an accepted draft, not the token that the verification adds
/// behind them: then something ended the generation inside an accepted run.
bool ended_inside_a_run(const GenerateResult& result) {
  if (result.accepted_per_cycle.empty()) return false;
  int64_t left = static_cast<int64_t>(result.token_ids.size()) - 1;  // the first is the prefill's
  for (int64_t a : result.accepted_per_cycle) left -= a + 1;
  const int64_t last = result.accepted_per_cycle.back();
  return last > 0 && left + last + 1 <= last;
}

struct ReplayCase {
  const char* name;
  WeightFormat format;
  double temperature;
  size_t prompts;
};

class ReplayedDrafts : public testing::TestWithParam<ReplayCase> {
 protected:
  ReplayedDrafts() {
    LoadOptions load = tiny_options(GetParam().format);
    load.adapter = "copy";  // block_size 32
    generator_ = std::make_unique<Generator>(load);
  }

  GenerateResult run(const std::vector<int32_t>& prompt, const GenerateOptions& options) {
    return generator_->generate(prompt, options, nullptr, nullptr, {});
  }

  /// As it is, cut by the limit, and cut by a stop string from the middle of the text.
  void check(const std::vector<int32_t>& prompt, const GenerateResult& truth, GenerateOptions dual,
             int64_t short_limit) {
    for (int64_t limit : {dual.max_new_tokens, short_limit}) {
      GenerateOptions options = dual;
      options.max_new_tokens = limit;
      const GenerateResult result = run(prompt, options);
      auto expected = truth.token_ids;
      if (static_cast<int64_t>(expected.size()) > limit) {
        expected.resize(static_cast<size_t>(limit));
      }
      EXPECT_EQ(result.token_ids, expected);
      for (int64_t a : result.accepted_per_cycle) ++lengths_[static_cast<size_t>(a)];
      if (ended_inside_a_run(result)) {
        ++(result.finish_reason == FinishReason::kStop ? eos_inside_ : limit_inside_);
      }
    }
    if (truth.text.size() <= 60) return;
    dual.stop = {truth.text.substr(50, 6)};
    const GenerateResult stopped = run(prompt, dual);
    EXPECT_EQ(stopped.text, truth.text.substr(0, truth.text.find(dual.stop[0])));
    EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
    stop_inside_ += ended_inside_a_run(stopped);
  }

  std::unique_ptr<Generator> generator_;
  std::vector<int64_t> lengths_ = std::vector<int64_t>(32, 0);
  int64_t eos_inside_ = 0, limit_inside_ = 0, stop_inside_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All, ReplayedDrafts,
                         testing::Values(ReplayCase{"bf16_greedy", WeightFormat::kBF16, 0, 12},
                                         ReplayCase{"bf16_sampled", WeightFormat::kBF16, 0.9, 12},
                                         ReplayCase{"f32_greedy", WeightFormat::kF32, 0, 12},
                                         ReplayCase{"f32_sampled", WeightFormat::kF32, 0.9, 12}),
                         [](const auto& param) { return std::string(param.param.name); });

// Every accepted length occurs, and end of sequence, stop string and limit inside an accepted run.
TEST_P(ReplayedDrafts, WithErrorsReachEveryCase) {
  auto goldens = read_jsonl("tiny/generate.jsonl");
  goldens.resize(GetParam().prompts);
  uint64_t seed = 0;
  for (const auto& golden : goldens) {
    const auto prompt = ids(golden.at("prompt_ids"));
    GenerateOptions options;
    options.max_new_tokens = 120;
    options.sampling.temperature = GetParam().temperature;
    options.sampling.seed = 77;
    options.use_diffusion_mode = false;
    const GenerateResult truth = run(prompt, options);
    options.use_diffusion_mode = true;
    options.draft_max = 31;
    const double one = ReplayDrafter::kOneError;
    for (double rate : {0.0, 0.05, 0.3, one, one}) {
      ReplayDrafter drafter(truth.token_ids, prompt.size(), rate, seed += 13);
      generator_->set_drafter(&drafter);
      check(prompt, truth, options, static_cast<int64_t>(20 + seed % 31));
      generator_->set_drafter(nullptr);
    }
  }
  std::printf("accepted lengths:");
  for (int64_t count : lengths_) std::printf(" %lld", static_cast<long long>(count));
  std::printf("; inside a run: eos %lld limit %lld stop %lld\n",
              static_cast<long long>(eos_inside_), static_cast<long long>(limit_inside_),
              static_cast<long long>(stop_inside_));
  for (size_t i = 0; i < lengths_.size(); ++i) EXPECT_GT(lengths_[i], 0) << "accepted length " << i;
  EXPECT_GT(eos_inside_, 0);
  EXPECT_GT(limit_inside_, 0);
  EXPECT_GT(stop_inside_, 0);
}

TEST(Generator, BatchEqualsSolo) {
  LoadOptions load = tiny_options(WeightFormat::kBF16);
  load.batch = 5;
  Generator generator(load);
  const auto goldens = read_jsonl("tiny/generate.jsonl");
  std::vector<BatchRequest> requests;
  for (size_t i = 0; i < 14; ++i) {
    BatchRequest request;
    request.input_ids = ids(goldens[i].at("prompt_ids"));
    request.options.max_new_tokens = 10 + 13 * static_cast<int64_t>(i % 5);
    request.options.draft_max = std::vector<int64_t>{7, -1, 2, 0}[i % 4];
    request.options.sampling.temperature = i % 3 ? 0.9 : 0.0;
    request.options.sampling.seed = i;
    requests.push_back(std::move(request));
  }
  requests[6].input_ids.assign(2000, 5);  // too long
  std::vector<GenerateResult> results(requests.size());
  std::vector<std::string> failures(requests.size());
  generator.generate_batch(
      requests, [&](size_t i, GenerateResult result) { results[i] = std::move(result); },
      [&](size_t i, const std::string& message) { failures[i] = message; }, {});
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i == 6) {
      EXPECT_NE(failures[i].find("2000"), std::string::npos) << failures[i];
      EXPECT_NE(failures[i].find("1024"), std::string::npos) << failures[i];
      continue;
    }
    const auto solo =
        generator.generate(requests[i].input_ids, requests[i].options, nullptr, nullptr, {});
    EXPECT_EQ(results[i].token_ids, solo.token_ids) << "request " << i;
    EXPECT_EQ(results[i].text, solo.text);
    EXPECT_EQ(failures[i], "");
  }
}

TEST(Generator, ConversationReusesItsCacheAndSaysTheSame) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  Conversation conversation(generator.block_pool());
  auto prompt = ids(read_jsonl("tiny/generate.jsonl")[0].at("prompt_ids"));
  GenerateOptions options;
  options.max_new_tokens = 30;
  for (int turn = 0; turn < 4; ++turn) {
    const auto fresh = generator.generate(prompt, options, nullptr, nullptr, {});
    const auto reused = generator.generate(prompt, options, nullptr, &conversation, {});
    EXPECT_EQ(fresh.token_ids, reused.token_ids) << "turn " << turn;
    EXPECT_EQ(reused.cached_tokens > 0, turn > 0);
    EXPECT_EQ(fresh.kv_bytes, reused.kv_bytes);
    prompt.insert(prompt.end(), reused.token_ids.begin(), reused.token_ids.end());
    prompt.push_back(static_cast<int32_t>(20 + turn));
  }
  // A prompt that is wholly cached reruns its last token.
  const auto again = generator.generate(std::span(conversation.tokens).first(40), options, nullptr,
                                        &conversation, {});
  EXPECT_EQ(again.cached_tokens, 39);
}

TEST(Generator, DualAndArTakeTheSameKvBytes) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  for (const auto& golden : read_jsonl("tiny/generate.jsonl")) {
    GenerateOptions options;
    options.max_new_tokens = golden.at("max_new_tokens");
    const auto prompt = ids(golden.at("prompt_ids"));
    const auto dual = generator.generate(prompt, options, nullptr, nullptr, {});
    options.use_diffusion_mode = false;
    const auto ar = generator.generate(prompt, options, nullptr, nullptr, {});
    EXPECT_GT(dual.kv_bytes, 0);
    EXPECT_EQ(dual.kv_bytes, ar.kv_bytes);
  }
}

TEST(Generator, CancelFromAnotherThread) {
  Generator generator(tiny_options(WeightFormat::kF32));
  GenerateOptions options;
  options.ignore_eos = true;
  const auto prompt = ids(read_jsonl("tiny/generate.jsonl")[0].at("prompt_ids"));
  const auto whole = generator.generate(prompt, options, nullptr, nullptr, {});
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
  std::stop_source source;
  struct CancelAfterText : Streamer {
    explicit CancelAfterText(std::stop_source& s) : source(s) {}
    void on_text(std::string_view text) override {
      received += text;
      if (received.size() > 20 && !canceller.joinable())
        canceller = std::thread([this] { source.request_stop(); });
    }
    std::stop_source& source;
    std::string received;
    std::thread canceller;
  } streamer(source);
  const auto cut = generator.generate(prompt, options, &streamer, nullptr, source.get_token());
  streamer.canceller.join();
  EXPECT_EQ(cut.finish_reason, FinishReason::kCancelled);
  EXPECT_LT(cut.token_ids.size(), whole.token_ids.size());
  EXPECT_TRUE(std::equal(cut.token_ids.begin(), cut.token_ids.end(), whole.token_ids.begin()));
}

TEST(Generator, WrongInputIsOneLine) {
  Generator generator(tiny_options(WeightFormat::kF32));
  const auto message = [&](std::vector<int32_t> prompt) {
    try {
      generator.generate(prompt, {}, nullptr, nullptr, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({5, 4000}).find("4000"), std::string::npos);
  EXPECT_NE(message({-7}).find("-7"), std::string::npos);
  EXPECT_NE(message(std::vector<int32_t>(1024, 5)).find("1024"), std::string::npos);
  EXPECT_EQ(message({}), "");  // an empty prompt works
}

}  // namespace
}  // namespace orthrus
