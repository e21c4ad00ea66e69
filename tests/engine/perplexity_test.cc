#include "engine/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "engine/test_models.h"
#include "model/dequantize.h"
#include "model/head_format.h"

namespace orthrus {
namespace {

/// People's own text: the questions of gsm8k/questions.jsonl, one a line.
std::string question_text() {
  std::string text;
  for (const nlohmann::json& line : read_jsonl("gsm8k/questions.jsonl")) {
    text += line.at("question").get<std::string>() + "\n";
  }
  return text;
}

/// What the tiny checkpoint was trained on: prompts and answers, one after the other.
std::vector<int32_t> tiny_tokens() {
  std::vector<int32_t> tokens;
  for (const nlohmann::json& golden : read_jsonl("tiny/generate.jsonl")) {
    for (const char* key : {"prompt_ids", "ar_ids"}) {
      const std::vector<int32_t> ids = golden.at(key);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
    }
  }
  return tokens;
}

LoadOptions ar_only(LoadOptions options) {
  options.diffusion = false;
  options.adapter.clear();
  return options;
}

PerplexityResult against_f32(const Model& model, std::span<const int32_t> tokens, ThreadPool& pool,
                             KvType kv_type) {
  const Model reference = dequantized(model, pool);
  PerplexityOptions options;
  options.chunk = 256;
  options.kv_type = kv_type;
  options.reference = &reference;
  return perplexity(model, {choose_isa(), pool}, tokens, options);
}

PerplexityResult tiny_against_f32(WeightFormat format, std::span<const int32_t> tokens,
                                  KvType kv_type) {
  ThreadPool pool(2);
  return against_f32(open_model(ar_only(tiny_options(format)), pool).model, tokens, pool, kv_type);
}

void expect_close(const char* what, const PerplexityResult& result, double share) {
  const double change = result.perplexity / *result.reference_perplexity - 1;
  std::printf("%s: perplexity %.4f, f32 %.4f (%+.3f %%), mean KL %.6f, top token %.2f %%\n", what,
              result.perplexity, *result.reference_perplexity, 100 * change, *result.kl_mean,
              100 * *result.top1_agreement);
  EXPECT_LT(std::abs(change), share) << what;
  EXPECT_GT(*result.kl_mean, 0) << what;
}

TEST(Perplexity, TinyCheckpointKeepsItsQuality) {
  const std::vector<int32_t> tokens = tiny_tokens();
  ASSERT_GT(tokens.size(), 2000u);
  const auto run = [&](WeightFormat format, KvType kv = KvType::kBF16) {
    return tiny_against_f32(format, tokens, kv);
  };
  expect_close("tiny q8", run(WeightFormat::kQ8), 0.005);
  expect_close("tiny q4", run(WeightFormat::kQ4), 0.01);
  expect_close("tiny bf16", run(WeightFormat::kBF16), 0.005);
  expect_close("tiny f32, keys and values q8", run(WeightFormat::kF32, KvType::kQ8), 0.005);
}

// The file's 4 bits and its 8-bit embedding stay as they are in q8 and in q4: one run serves both,
// and is held to the narrower limit.
TEST(Perplexity, DemoModelKeepsItsQuality) {
  ThreadPool pool(2);
  const LoadedModel demo = open_model(ar_only(demo_options(WeightFormat::kQ8)), pool);
  EXPECT_EQ(demo.model.layers.front().mlp.down_proj.form(), TensorType::kQ4_1);
  const std::vector<int32_t> tokens = demo.tokenizer.encode(question_text());
  ASSERT_GT(tokens.size(), 2500u);
  expect_close("demo", against_f32(demo.model, tokens, pool, KvType::kBF16), 0.005);
  expect_close("demo, keys and values q8", against_f32(demo.model, tokens, pool, KvType::kQ8),
               0.005);
}

/// A model whose matrices all are f32, packed anew as load_model packs float files.
Model repacked(Model model, WeightFormat format, ThreadPool& pool) {
  const auto pack_anew = [&](PackedMatrix& matrix, WeightFormat as) {
    std::vector<float> values(static_cast<size_t>(matrix.rows() * matrix.cols()));
    for (int64_t r = 0; r < matrix.rows(); ++r) {
      unpack_row(matrix, r, values.data() + r * matrix.cols());
    }
    MatrixSource source;
    source.data = std::as_bytes(std::span(values));
    source.rows = matrix.rows();
    source.cols = matrix.cols();
    matrix = pack(source, as, pool);
  };
  pack_anew(model.lm_head, head_format(format));
  for (LayerWeights& w : model.layers) {
    for (PackedMatrix* matrix : {&w.ar.q_proj, &w.ar.k_proj, &w.ar.v_proj, &w.ar.o_proj,
                                 &w.mlp.gate_proj, &w.mlp.up_proj, &w.mlp.down_proj}) {
      pack_anew(*matrix, format);
    }
  }
  return model;
}

// What --weights q8 and q4 make of a float file (Q4_1 blocks would stay as they are, above).
TEST(Perplexity, FloatWeightsOfTheDemoModelKeepTheirQuality) {
  ThreadPool pool(2);
  const LoadedModel demo = open_model(ar_only(demo_options(WeightFormat::kF32)), pool);
  ASSERT_FALSE(demo.model.embedding);
  const std::vector<int32_t> tokens = demo.tokenizer.encode(question_text());
  ASSERT_GT(tokens.size(), 2500u);  // over a fifth of it the change is mostly chance: +-0.35 %
  const auto check = [&](WeightFormat format, TensorType form, double share) {
    const Model model = repacked(demo.model, format, pool);
    EXPECT_EQ(model.layers.front().mlp.down_proj.form(), form);
    EXPECT_EQ(model.lm_head.form(), TensorType::kQ8_0);
    expect_close(format == WeightFormat::kQ8 ? "demo q8" : "demo q4",
                 against_f32(model, tokens, pool, KvType::kBF16), share);
  };
  check(WeightFormat::kQ8, TensorType::kQ8_0, 0.005);
  check(WeightFormat::kQ4, TensorType::kQ4_0, 0.01);
}

TEST(Perplexity, F32AgainstItselfIsExact) {
  const std::vector<int32_t> tokens = tiny_tokens();
  const PerplexityResult result =
      tiny_against_f32(WeightFormat::kF32, std::span(tokens).first(600), KvType::kF32);
  EXPECT_EQ(result.perplexity, *result.reference_perplexity);
  EXPECT_NEAR(*result.kl_mean, 0, 1e-9);
  EXPECT_EQ(*result.top1_agreement, 1);
}

/// The definition, straight from the logits of one pass.
double mean_nll(const Model& model, ComputeContext context, std::span<const int32_t> tokens) {
  BlockPool blocks(kv_layout(model.config, KvType::kF32, KvType::kF32), 8);
  BlockTable table(blocks);
  const auto count = static_cast<int64_t>(tokens.size());
  table.reserve(count);
  Forward forward(model, blocks.layout(), context, count);
  const Span span{&table, View::kAr, tokens, 0, 0, count};
  const std::span<const float> logits = forward.run(span);
  const auto vocab = static_cast<size_t>(model.config.vocab_size);
  double sum = 0;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    double total = 0;
    for (const float x : logits.subspan(i * vocab, vocab)) total += std::exp(double{x});
    sum += std::log(total) - double{logits[i * vocab + static_cast<size_t>(tokens[i + 1])]};
  }
  return sum / static_cast<double>(tokens.size() - 1);
}

TEST(Perplexity, IsTheMeanOverChunksThatStartEmpty) {
  ThreadPool pool(2);
  const ComputeContext context{choose_isa(), pool};
  const Model model = open_model(ar_only(tiny_options(WeightFormat::kF32)), pool).model;
  const std::vector<int32_t> all = tiny_tokens();
  const auto tokens = std::span(all).first(200 + 50);  // a full chunk, over one pass; a short one
  PerplexityOptions options;
  options.chunk = 200;
  options.kv_type = KvType::kF32;
  const PerplexityResult result = perplexity(model, context, tokens, options);
  EXPECT_EQ(result.chunks, 2);
  EXPECT_EQ(result.scored_tokens, 199 + 49);
  const double expected = (199 * mean_nll(model, context, tokens.first(200)) +
                           49 * mean_nll(model, context, tokens.subspan(200))) /
                          248;
  EXPECT_NEAR(result.mean_nll, expected, 1e-5);
  EXPECT_DOUBLE_EQ(result.perplexity, std::exp(result.mean_nll));
  EXPECT_FALSE(result.kl_mean);

  options.max_chunks = 1;
  EXPECT_EQ(perplexity(model, context, tokens, options).scored_tokens, 199);
  // One token left over has nothing to score.
  options.max_chunks = 0;
  EXPECT_EQ(perplexity(model, context, tokens.first(201), options).chunks, 1);
}

TEST(Perplexity, RefusesTextsAndChunksThatCannotBeScored) {
  ThreadPool pool(1);
  const ComputeContext context{choose_isa(), pool};
  const Model model = open_model(ar_only(tiny_options(WeightFormat::kF32)), pool).model;
  const std::vector<int32_t> tokens = tiny_tokens();
  EXPECT_THROW(perplexity(model, context, std::span(tokens).first(1), {}), Error);
  PerplexityOptions options;
  options.chunk = 1;
  EXPECT_THROW(perplexity(model, context, tokens, options), Error);
  options.chunk = model.config.max_position_embeddings + 1;
  EXPECT_THROW(perplexity(model, context, tokens, options), Error);
}

TEST(Dequantized, HoldsTheVeryValues) {
  ThreadPool pool(2);
  const Model model = open_model(ar_only(tiny_options(WeightFormat::kQ4)), pool).model;
  const Model f32 = dequantized(model, pool);
  const PackedMatrix& packed = model.layers[1].mlp.down_proj;
  const PackedMatrix& plain = f32.layers[1].mlp.down_proj;
  EXPECT_EQ(plain.form(), TensorType::kF32);
  std::vector<float> a(static_cast<size_t>(packed.cols())), b(a.size());
  for (int64_t r = 0; r < packed.rows(); ++r) {
    unpack_row(packed, r, a.data());
    unpack_row(plain, r, b.data());
    ASSERT_EQ(a, b) << "row " << r;
  }
}

}  // namespace
}  // namespace orthrus
