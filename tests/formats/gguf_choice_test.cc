#include "formats/gguf_choice.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

using Paths = std::vector<std::string>;

std::string tag_of(const std::string& path) {
  const auto models = gguf_models(Paths{path});
  return models.size() == 1 ? models[0].quant : "no model";
}

TEST(GgufModels, TagsComeFromTheNames) {
  EXPECT_EQ(tag_of("Qwen3-0.6B-Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(tag_of("SmolLM2-135M-Instruct.Q4_1.gguf"), "Q4_1");
  EXPECT_EQ(tag_of("qwen2.5-0.5b-instruct-q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(tag_of("Qwen3-8B-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(tag_of("BUD-Q4_0.gguf"), "Q4_0");
  EXPECT_EQ(tag_of("m-IQ2_XXS.gguf"), "IQ2_XXS");
  EXPECT_EQ(tag_of("m.bf16.gguf"), "BF16");
  EXPECT_EQ(tag_of("gpt-oss-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(tag_of("Q4_0/model.gguf"), "Q4_0");
  EXPECT_EQ(tag_of("m-Q4_K_M-v2.gguf"), "Q4_K_M");
  EXPECT_EQ(tag_of("Q8_0.GGUF"), "Q8_0");
  EXPECT_EQ(tag_of("Queen-Qwen-I9.gguf"), "");
  EXPECT_EQ(tag_of(".gguf"), "no model");
  EXPECT_EQ(tag_of("mmproj-model-f16.gguf"), "no model");
  EXPECT_EQ(tag_of("sub/imatrix-Q4_0.gguf"), "no model");
  EXPECT_EQ(tag_of("model.safetensors"), "no model");
}

TEST(GgufModels, PartsBelongTogether) {
  const auto models = gguf_models(
      Paths{"b/M-Q8_0-00002-of-00002.gguf", "b/M-Q8_0-00001-of-00002.gguf", "M-Q4_0.gguf",
            "lost-Q2_K-00001-of-00003.gguf", "lost-Q2_K-00003-of-00003.gguf",
            "odd-00000-of-00000.gguf", "odd-00002-of-00001.gguf"});
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].parts, Paths{"M-Q4_0.gguf"});
  EXPECT_EQ(models[1].parts,
            (Paths{"b/M-Q8_0-00001-of-00002.gguf", "b/M-Q8_0-00002-of-00002.gguf"}));
  EXPECT_EQ(models[1].quant, "Q8_0");
}

TEST(ChooseGguf, ByTypeInAnyCase) {
  const auto models = gguf_models(Paths{"M-Q4_K_M.gguf", "M-Q4_K_S.gguf", "M-UD-Q4_K_M.gguf"});
  EXPECT_EQ(choose_gguf(models, "q4_k_m", "o/m")->parts[0], "M-Q4_K_M.gguf");
  EXPECT_EQ(choose_gguf(models, "UD-Q4_K_M", "o/m")->parts[0], "M-UD-Q4_K_M.gguf");
  EXPECT_FALSE(choose_gguf(models, "Q4_K", "o/m"));
  EXPECT_FALSE(choose_gguf({}, "", "o/m"));
}

TEST(ChooseGguf, WithoutATypeTheUsualOne) {
  const auto choose = [](const Paths& paths) {
    return choose_gguf(gguf_models(paths), "", "o/m")->parts[0];
  };
  EXPECT_EQ(choose({"M-Q2_K.gguf", "M-Q4_K_M.gguf", "M-Q8_0.gguf"}), "M-Q4_K_M.gguf");
  EXPECT_EQ(choose({"M-Q2_K.gguf", "M-Q8_0.gguf"}), "M-Q8_0.gguf");
  EXPECT_EQ(choose({"anything.gguf"}), "anything.gguf");
}

TEST(ChooseGguf, SeveralThatFitAreAQuestion) {
  const auto message = [](const Paths& paths, const std::string& quant) {
    try {
      choose_gguf(gguf_models(paths), quant, "o/m");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({"M-Q2_K.gguf", "M-F16.gguf", "x.gguf"}, ""),
            "o/m has several GGUF models, name one: o/m:F16, o/m:Q2_K, x.gguf");
  EXPECT_EQ(message({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "Q8_0"),
            "o/m has several GGUF models, name one: a-Q8_0.gguf, b-Q8_0.gguf");
}

}  // namespace
}  // namespace orthrus
