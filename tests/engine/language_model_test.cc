#include "orthrus/language_model.h"

#include <gtest/gtest.h>

#include <optional>

#include "engine/test_models.h"

namespace orthrus {
namespace {

const std::vector<int32_t> kPrompt = {1022, 346, 259, 198, 555, 261};

TEST(LanguageModel, InfoSaysWhatReallyRuns) {
  LoadOptions options = tiny_options(WeightFormat::kF32, 2);
  const LanguageModel model = LanguageModel::load(options);
  const ModelInfo info = model.info();
  EXPECT_EQ(info.path, tiny_path());
  EXPECT_EQ(info.diffusion_source, "checkpoint");
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(info.key_type, KvType::kF32);
  EXPECT_EQ(info.block_size, 8);
  EXPECT_GT(info.weight_bytes, info.diffusion_bytes);
  EXPECT_GT(info.diffusion_bytes, 0u);
  options.diffusion = false;
  const ModelInfo plain = LanguageModel::load(options).info();
  EXPECT_EQ(plain.diffusion_source, "");
  EXPECT_EQ(plain.block_size, 0);
  EXPECT_EQ(plain.weight_bytes, info.weight_bytes - info.diffusion_bytes);
}

TEST(LanguageModel, WeightsAreNamedByWhatMostOfThemAre) {
  EXPECT_EQ(LanguageModel::load(tiny_options(WeightFormat::kAuto)).info().weights, "bf16");
  EXPECT_EQ(LanguageModel::load(tiny_options(WeightFormat::kQ4)).info().weights, "q4");

  ThreadPool pool(2);
  const ModelConfig config = open_checkpoint(tiny_path()).config;
  Model four = random_model(config, WeightFormat::kQ4, pool);
  EXPECT_EQ(weights_name(four, WeightFormat::kQ4), "q4");
  EXPECT_EQ(weights_name(four, WeightFormat::kAuto), "q4_0");
  EXPECT_EQ(weights_name(four, WeightFormat::kQ8), "q4_0");  // such a file stays what it is
  Model eight = random_model(config, WeightFormat::kQ8, pool);
  EXPECT_EQ(weights_name(eight, WeightFormat::kQ8), "q8");
  EXPECT_EQ(weights_name(eight, WeightFormat::kAuto), "q8_0");
  // The first matrix of a file may be of another type than the others.
  std::swap(four.layers[0].mlp.gate_proj, eight.layers[0].mlp.gate_proj);
  EXPECT_EQ(weights_name(four, WeightFormat::kAuto), "q4_0");
  EXPECT_EQ(weights_name(eight, WeightFormat::kQ8), "q8");
}

TEST(LanguageModel, SessionsBelongToTheirModel) {
  LanguageModel one = LanguageModel::load(tiny_options(WeightFormat::kBF16));
  LanguageModel other = LanguageModel::load(tiny_options(WeightFormat::kBF16));
  Session session = one.new_session();
  GenerateOptions options;
  options.max_new_tokens = 4;
  EXPECT_THROW(other.generate(kPrompt, options, nullptr, &session), Error);
  EXPECT_EQ(one.generate(kPrompt, options, nullptr, &session).token_ids,
            other.generate(kPrompt, options).token_ids);
}

TEST(LanguageModel, SessionsMayOutliveTheirModel) {
  std::optional<LanguageModel> model = LanguageModel::load(tiny_options(WeightFormat::kBF16));
  Session session = model->new_session();
  GenerateOptions options;
  options.max_new_tokens = 4;
  model->generate(kPrompt, options, nullptr, &session);
  model.reset();
  session.reset();  // address sanitizer watches this
}

// The vocabulary is padded: rows 1024 to 1087 have no token, but a biased model can yield them.
TEST(LanguageModel, PaddingTokensDecodeToNothing) {
  LanguageModel model = LanguageModel::load(tiny_options(WeightFormat::kBF16));
  GenerateOptions options;
  options.max_new_tokens = 3;
  options.sampling.logit_bias = {{1050, 1000.0}};
  const GenerateResult result = model.generate(kPrompt, options);
  EXPECT_EQ(result.token_ids, (std::vector<int32_t>{1050, 1050, 1050}));
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(model.decode(result.token_ids), "");
  EXPECT_THROW(model.decode(std::vector<int32_t>{1088}), Error);
  EXPECT_THROW(model.decode(std::vector<int32_t>{-1}), Error);
}

TEST(LanguageModel, DefaultSamplingIsThatOfTheModel) {
  const SamplingOptions sampling =
      LanguageModel::load(tiny_options(WeightFormat::kBF16)).default_sampling();
  EXPECT_EQ(sampling.temperature, 0.7);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_EQ(sampling.top_p, 0.8);
}

}  // namespace
}  // namespace orthrus
