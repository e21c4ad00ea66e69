#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "cli/bench_compare.h"
#include "cli/bench_deep.h"
#include "cli/bench_report.h"
#include "cli/eval_report.h"
#include "engine/draft_weights.h"
#include "engine/shapes.h"
#include "formats/checkpoint.h"

namespace orthrus {
namespace {

std::string tiny_path() { return std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint"; }

const MachineLimits kMachine{"A CPU", "avx2", 2, 10, 100, 400, 200};
const auto kProbe = [] { return kMachine; };

/// A case that takes 1, 2, 3, ... times `seconds`, in turn.
BenchCase fake(const std::string& name, int64_t rows, std::optional<int64_t> context,
               std::vector<PassWork> passes, std::vector<double> seconds) {
  size_t calls = 0;
  return {name, rows, context, std::move(passes),
          [=]() mutable { return seconds[calls++ % seconds.size()]; }};
}

TEST(Bench, MediansAndRatiosFollowTheDefinitions) {
  // Two warm-up runs come first, so the timed ones begin at the third value.
  const std::vector<BenchCase> cases = {
      fake("rows", 1, std::nullopt, {{4e9, 2e9, 0}}, {9, 9, 0.5, 0.4, 0.9}),  // limit 0.4 s
      fake("rows", 8, std::nullopt, {{4e9, 0, 400e9}}, {2}),                  // limit 1 s
      fake("decode", 1, 256, {{8e9, 0, 0}}, {1}),                             // limit 0.8 s
      fake("dual", 8, 256, {{8e9, 0, 0}, {0, 100e9, 40e9}}, {2.5}),           // 0.8 + 1.1 s
      fake("other", 1, 256, {}, {0.05}),
  };
  const auto results = run_bench(cases, 3, kProbe, [](double) {}).results;
  ASSERT_EQ(results.size(), 5u);
  EXPECT_DOUBLE_EQ(results[0].seconds, 0.5);
  EXPECT_DOUBLE_EQ(results[0].least, 0.4);
  EXPECT_DOUBLE_EQ(results[0].most, 0.9);
  EXPECT_DOUBLE_EQ(*results[0].gbps, 8);
  EXPECT_DOUBLE_EQ(*results[0].gflops, 4);
  EXPECT_DOUBLE_EQ(*results[0].limit_seconds, 0.4);
  EXPECT_DOUBLE_EQ(*results[0].ratio_to_limit, 0.5 / 0.4);
  EXPECT_DOUBLE_EQ(*results[0].ratio_to_one_row, 1);
  EXPECT_DOUBLE_EQ(*results[1].ratio_to_one_row, 4);
  EXPECT_DOUBLE_EQ(*results[1].ratio_to_limit, 2);
  EXPECT_DOUBLE_EQ(*results[1].gflops, 200);
  EXPECT_DOUBLE_EQ(*results[3].ratio_to_one_row, 2.5);
  EXPECT_DOUBLE_EQ(*results[3].ratio_to_limit, 2.5 / 1.9);
  EXPECT_FALSE(results[4].gbps);
  EXPECT_FALSE(results[4].limit_seconds);
  EXPECT_FALSE(results[4].ratio_to_limit);
  EXPECT_DOUBLE_EQ(*results[4].ratio_to_one_row, 0.05);
}

// A repetition is judged by the better of the probes around it.
TEST(Bench, RatiosFollowAMachineThatChanges) {
  const double gbps[] = {10, 10, 20, 40};
  size_t probes = 0;
  const auto probe = [&] {
    MachineLimits machine = kMachine;
    machine.read_gbps = gbps[probes++];
    return machine;
  };
  const std::vector<BenchCase> cases = {
      fake("decode", 1, 256, {{4e9, 0, 0}}, {9, 9, 0.4, 0.3, 0.2})};
  const BenchRun run = run_bench(cases, 3, probe, [](double) {});
  EXPECT_EQ(probes, 4u);
  EXPECT_DOUBLE_EQ(run.machine.read_gbps, 15);
  EXPECT_DOUBLE_EQ(*run.results[0].limit_seconds, 0.2);   // of 0.4, 0.2 and 0.1
  EXPECT_DOUBLE_EQ(*run.results[0].ratio_to_limit, 1.5);  // of 1, 1.5 and 2
  ASSERT_EQ(run.probes.size(), 4u);
  EXPECT_DOUBLE_EQ(run.probes[2].read_gbps, 20);
}

BenchReport report_of(const std::vector<BenchCase>& cases) {
  BenchReport report;
  report.model = "a model";
  report.weights = "bf16";
  report.kv_type = "q8";
  report.reps = 1;
  report.run = run_bench(cases, 1, kProbe, [](double) {});
  return report;
}

TEST(Bench, JsonHasTheKeysAndTheBreakEven) {
  const std::vector<BenchCase> cases = {fake("decode", 1, 256, {{8e9, 0, 0}}, {1}),
                                        fake("dual", 4, 256, {{16e9, 0, 0}}, {2.25}),
                                        fake("other", 1, 256, {}, {0.05})};
  const auto json = bench_json(report_of(cases));
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::set<std::string> names;
    for (const auto& item : object.items()) names.insert(item.key());
    return names;
  };
  EXPECT_EQ(keys(json.at("machine")),
            (std::set<std::string>{"cpu", "isa", "threads", "read_gbps", "fma_gflops", "int8_gops",
                                   "bf16_gflops"}));
  for (const auto& c : json.at("cases")) {
    EXPECT_EQ(keys(c), (std::set<std::string>{"name", "weights", "kv_type", "rows", "context",
                                              "seconds", "gbps", "gflops", "limit_seconds",
                                              "ratio_to_one_row", "ratio_to_limit"}));
  }
  ASSERT_EQ(json.at("probes").size(), 2u);
  for (const auto& probe : json["probes"]) {
    EXPECT_EQ(probe, (nlohmann::ordered_json{{"read_gbps", 10.0},
                                             {"fma_gflops", 100.0},
                                             {"int8_gops", 400.0},
                                             {"bf16_gflops", 200.0}}));
  }
  EXPECT_DOUBLE_EQ(json["cases"][0]["limit_seconds"].get<double>(), 0.8);
  EXPECT_TRUE(json["cases"][2]["limit_seconds"].is_null());
  EXPECT_TRUE(json["cases"][2]["gbps"].is_null());
  ASSERT_EQ(json["break_even"].size(), 1u);
  EXPECT_EQ(json["break_even"][0]["block"], 4);
  EXPECT_DOUBLE_EQ(json["break_even"][0]["tokens_per_cycle"].get<double>(), 2.25);
  EXPECT_TRUE(json["warnings"].empty());
}

TEST(Bench, CaseBelowItsLimitIsABrokenProbe) {
  const std::vector<BenchCase> cases = {
      fake("rows", 1, std::nullopt, {{4e9, 0, 0}}, {0.39}),  // 0.975 of the limit: noise
      fake("rows", 2, std::nullopt, {{4e9, 0, 0}}, {0.38})};
  const auto warnings = bench_warnings(report_of(cases));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("rows of 2 rows"), std::string::npos) << warnings[0];
}

/// The tiny checkpoint and everything that bench needs of it.
struct TinyBench {
  TinyBench()
      : pool(2),
        context{choose_isa(), pool},
        model(load(pool)),
        matmul(model, context, kBenchMatmulRows),
        sequence(model, context, KvType::kBF16, bench_cache_tokens(model.config, kBenchLongContext),
                 kBenchMaxRows) {}

  static Model load(ThreadPool& pool) {
    LoadRequest request;
    request.diffusion = LoadRequest::Diffusion::kCheckpoint;
    return load_model(open_checkpoint(tiny_path()), request, pool);
  }

  ThreadPool pool;
  ComputeContext context;
  Model model;
  MatmulPass matmul;
  BenchSequence sequence;
};

TEST(Bench, MeasuresEveryCaseThatFitsTheModel) {
  TinyBench tiny;
  const auto cases = bench_cases(tiny.model, tiny.matmul, tiny.sequence, {});
  std::set<std::string> names;
  for (const BenchCase& c : cases) {
    names.insert(c.name);
    EXPECT_LE(c.context.value_or(0), tiny.model.config.max_position_embeddings);
    if (c.name == "dual") {
      EXPECT_LE(c.rows, tiny.model.config.block_size);
    }
  }
  for (const char* name : {"rows", "decode", "prefill", "other", "dual", "cycle"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
  const auto results = run_bench(cases, 1, kProbe, [](double) {}).results;
  for (const BenchResult& result : results) {
    EXPECT_TRUE(result.ratio_to_one_row) << result.bench_case->name;
    if (!result.bench_case->passes.empty()) {  // the others are differences
      EXPECT_GT(result.seconds, 0);
    }
  }
  const auto only = bench_cases(tiny.model, tiny.matmul, tiny.sequence, {"rows"});
  ASSERT_EQ(only.size(), 7u);
  EXPECT_EQ(only.back().rows, 64);
}

TEST(Bench, WorkCountsEveryWeightOnce) {
  TinyBench tiny;
  const Model& model = tiny.model;
  const ModelConfig& c = model.config;
  const PassWork one = matmul_work(model, 1);
  double vectors = 4 * static_cast<double>(model.final_norm.size());
  for (const LayerWeights& layer : model.layers) {
    vectors += 4 * static_cast<double>(layer.input_norm.size() + layer.post_attention_norm.size() +
                                       layer.ar.q_norm.size() + layer.ar.k_norm.size());
  }
  EXPECT_DOUBLE_EQ(one.bytes,
                   static_cast<double>(model.weight_bytes() - model.diffusion_bytes()) - vectors);
  const double attention = static_cast<double>(
      c.hidden_size * c.head_dim * (2 * c.num_heads + 2 * c.num_kv_heads) * c.num_layers);
  const double mlp = static_cast<double>(3 * c.hidden_size * c.intermediate_size * c.num_layers);
  const double head = static_cast<double>(c.hidden_size * c.vocab_size);
  EXPECT_DOUBLE_EQ(one.bf16_ops, 2 * (attention + mlp + head));
  EXPECT_EQ(one.f32_ops, 0);
  EXPECT_EQ(one.int8_ops, 0);
  EXPECT_DOUBLE_EQ(matmul_work(model, 8).bytes, one.bytes);
  EXPECT_DOUBLE_EQ(matmul_work(model, 8).bf16_ops, 8 * one.bf16_ops);

  const KvLayout& kv = tiny.sequence.layout();
  // 2 (keys and values) x layers x kv_heads x head_dim x 2 bytes a token.
  const double kv_bytes =
      100.0 * 4 * static_cast<double>(c.num_layers * c.num_kv_heads * c.head_dim);
  EXPECT_DOUBLE_EQ(attention_work(model, kv, 1, 100).bytes, kv_bytes);
  const PassWork step = pass_work(model, kv, View::kAr, 1, 100, 1);
  EXPECT_DOUBLE_EQ(step.bytes, one.bytes + kv_bytes);
  EXPECT_DOUBLE_EQ(
      step.bf16_ops,  // attention too: keys and values are bf16
      one.bf16_ops + 4 * 101.0 * static_cast<double>(c.num_heads * c.head_dim * c.num_layers));
}

TEST(Bench, CompareRunsInterleavedPairs) {
  LoadOptions options;
  options.model = tiny_path();
  options.threads = 2;
  Generator generator(options);
  std::vector<CompareCase> cases =
      compare_cases(generator.loaded(), {{"one", {{1, 2, 3}}}, {"two", {{4, 5}}}}, -1);
  ASSERT_EQ(cases.size(), 5u);
  EXPECT_EQ(cases[3].name, "one");
  EXPECT_EQ(cases[3].prompts, (std::vector<std::vector<int32_t>>{{1, 2, 3}}));
  EXPECT_EQ(compare_cases(generator.loaded(), {}, -1).back().name, "maths");
  for (CompareCase& c : cases) c.options.max_new_tokens = 12;
  const auto answer = [&](std::span<const int32_t> prompt, const GenerateOptions& generation) {
    return generator.generate(prompt, generation, nullptr, nullptr, {});
  };
  const auto results = run_compare(answer, cases, 2, [](double) {}, {});
  ASSERT_EQ(results.size(), 5u);
  for (const CompareResult& result : results) {
    EXPECT_EQ(result.pairs, 2 * result.prompts) << result.name;
    EXPECT_TRUE(result.identical) << result.name;
    EXPECT_GT(result.ratio, 0) << result.name;
    EXPECT_LE(result.ratio_least, result.ratio) << result.name;
    EXPECT_GE(result.ratio_most, result.ratio) << result.name;
  }
  EXPECT_EQ(results[3].prompt_tokens, 3);
  EXPECT_EQ(compare_json(results).at("compare").size(), 5u);
}

TEST(Bench, DeepAnswersFollowTheMadeUpContext) {
  constexpr int64_t kContext = 512;
  TinyBench tiny;
  const CompareCase deep = deep_case(tiny.model.config, kContext, 4);
  ASSERT_EQ(deep.prompts.size(), 1u);
  EXPECT_EQ(deep.prompts[0].size(), 448u);  // the rest is the answer's
  DeepAnswers answers(tiny.model, tiny.context, KvType::kBF16, {1e10, 5e10, 2e11, 5e10}, kContext);
  std::vector<GenerateResult> seen;
  const auto answer = [&](std::span<const int32_t> prompt, const GenerateOptions& generation) {
    return seen.emplace_back(answers.answer(prompt, generation, {}));
  };
  const auto results = run_compare(answer, {deep}, 2, [](double) {}, {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].prompt_tokens, 448);
  EXPECT_EQ(results[0].pairs, 2);
  EXPECT_TRUE(results[0].identical);
  EXPECT_EQ(results[0].tokens, 2 * 64);
  ASSERT_EQ(seen.size(), 6u);  // a warm-up comes first
  for (const GenerateResult& result : seen) {
    EXPECT_EQ(result.token_ids, seen[0].token_ids);  // the context is as it was
    EXPECT_LE(result.forward_passes, 65 * 2);        // nothing of the prompt is read again
  }
  EXPECT_GT(seen[0].drafted, 0);
  EXPECT_EQ(seen[1].drafted, 0);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(answers.answer(deep.prompts[0], deep.options, stop.get_token()).finish_reason,
            FinishReason::kCancelled);
  EXPECT_THROW(deep_case(tiny.model.config, 64, -1), Error);
  EXPECT_THROW(deep_case(tiny.model.config, 1025, -1), Error);
}

TEST(Bench, LongContextIsAsNamed) {
  TinyBench tiny;
  std::set<int64_t> contexts;
  for (const BenchCase& c :
       bench_cases(tiny.model, tiny.matmul, tiny.sequence, {"decode", "attention", "dual"}, 900)) {
    contexts.insert(c.context.value());
  }
  EXPECT_EQ(contexts, (std::set<int64_t>{256, 900}));
}

TEST(Shapes, NamedOnesAndNoOthers) {
  const ModelConfig qwen = named_shape("qwen3-0.6b");
  EXPECT_EQ(qwen.num_heads * qwen.head_dim, 2048);
  EXPECT_TRUE(qwen.qk_norm);
  EXPECT_EQ(named_shape("smollm2-135m").num_layers, 30);
  EXPECT_EQ(named_shape("qwen3-1.7b").intermediate_size, 6144);
  EXPECT_FALSE(named_shape("qwen3-8b").tie_word_embeddings);
  EXPECT_THROW(named_shape("qwen3-9b"), Error);
}

TEST(Shapes, ACheckpointWithoutFilesHasTheTensorsOfBothViews) {
  const Checkpoint checkpoint = shape_checkpoint(named_shape("smollm2-135m"));
  const TensorInfo* mlp = checkpoint.tensors->find("model.layers.29.mlp.up_proj.weight");
  ASSERT_NE(mlp, nullptr);
  EXPECT_EQ(mlp->shape, (std::vector<int64_t>{1536, 576}));
  ASSERT_NE(checkpoint.tensors->find("model.layers.0.self_attn.q_proj_diff.weight"), nullptr);
  EXPECT_EQ(checkpoint.tensors->find("lm_head.weight"), nullptr);  // tied
  EXPECT_EQ(checkpoint.tensors->find("model.layers.30.mlp.up_proj.weight"), nullptr);
}

// With slow memory the fewest bits pay; where arithmetic is what takes the time, none of it does.
TEST(Shapes, DraftWeightsAreChosenAsForFiles) {
  const Checkpoint checkpoint = shape_checkpoint(named_shape("qwen3-0.6b"));
  const auto choose = [&](const MachineRates& rates, int64_t available) {
    return choose_draft_format(DraftWeights::kAuto, checkpoint, checkpoint.tensors.get(),
                               WeightFormat::kBF16, rates, available);
  };
  constexpr int64_t kMuch = int64_t{64} << 30;
  EXPECT_EQ(choose({1e9, 1e13, 1e13, 1e13}, kMuch), WeightFormat::kQ4);
  EXPECT_EQ(choose({1e13, 1e11, 1e10, 1e11}, kMuch), std::nullopt);
  EXPECT_EQ(choose({1e9, 1e13, 1e13, 1e13}, 0), std::nullopt);  // no memory for twins
}

TEST(EvalReport, JsonSaysWhatTheSummarySays) {
  AcceptanceTally tally(3);
  GenerateResult result;
  result.cycles = 2;
  result.accepted = 2;
  result.drafted = 4;
  result.forward_passes = 5;
  result.accepted_per_cycle = {2, 0};
  result.token_ids = {1, 2, 3, 4, 5};
  result.decode_seconds = 2;
  tally.add(result);
  const auto json = eval_json(tally.summary(), {"a model", "q8", "same", 3, 5});
  EXPECT_EQ(json.at("token_weighted").at("tokens_per_cycle"), 2.0);
  EXPECT_EQ(json.at("per_prompt_mean").at("n"), 1);
  EXPECT_EQ(json.at("acceptance_by_position"), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(json.at("accepted_histogram"), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(json.at("tokens_per_second"), 2.0);
  EXPECT_EQ(json.at("settings").at("block"), 3);
}

}  // namespace
}  // namespace orthrus
