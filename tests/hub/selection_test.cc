#include "hub/selection.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

using Names = std::vector<std::string>;

HubListing listing_of(const Names& paths) {
  HubListing listing;
  for (const std::string& path : paths) listing.files.push_back({path, 10, std::string(40, 'a')});
  return listing;
}

Names selected(const Names& paths, const std::string& quant = "", const Names& include = {},
               const Names& exclude = {}) {
  Names names;
  for (const HubFile& file :
       select_files(listing_of(paths), {"o/m", quant}, include, exclude).files)
    names.push_back(file.path);
  return names;
}

TEST(Patterns, AreThoseOfTheHub) {
  EXPECT_TRUE(matches_pattern("*.json", "config.json"));
  EXPECT_TRUE(matches_pattern("*.json", "sub/.config.json"));
  EXPECT_TRUE(matches_pattern("sub/", "sub/deep/file"));
  EXPECT_TRUE(matches_pattern("model-0000[12]-*", "model-00002-of-00009.safetensors"));
  EXPECT_TRUE(matches_pattern("?b", "ab"));
  EXPECT_FALSE(matches_pattern("*.json", "config.jsonl"));
  EXPECT_FALSE(matches_pattern("config", "config.json"));
  EXPECT_FALSE(matches_pattern("Config.json", "config.json"));
}

const Names kRepository = {"README.md",
                           "config.json",
                           "consolidated.safetensors",
                           "generation_config.json",
                           "model-00001-of-00002.safetensors",
                           "model-00002-of-00002.safetensors",
                           "model.safetensors.index.json",
                           "onnx/config.json",
                           "pytorch_model.bin",
                           "tokenizer.json",
                           "tokenizer.model"};

TEST(SelectFiles, TakesWhatTheEngineReads) {
  EXPECT_EQ(selected(kRepository),
            (Names{"config.json", "generation_config.json", "model-00001-of-00002.safetensors",
                   "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                   "tokenizer.json"}));
  const Selection selection = select_files(listing_of(kRepository), {"o/m", ""}, {}, {});
  EXPECT_EQ(selection.left_out, 5u);
  EXPECT_EQ(selection.left_out_bytes, 50u);
  EXPECT_EQ(selection.opens, "");
}

TEST(SelectFiles, TakesWeightsOnce) {
  Names both = kRepository;
  both.emplace_back("model.safetensors");
  EXPECT_EQ(selected(both), (Names{"config.json", "generation_config.json", "tokenizer.json",
                                   "model.safetensors"}));
}

TEST(SelectFiles, PatternsTakeTheirPlace) {
  EXPECT_EQ(selected(kRepository, "", {"*.md", "onnx/*"}),
            (Names{"README.md", "onnx/config.json"}));
  EXPECT_EQ(selected(kRepository, "", {"*.md", "onnx/*"}, {"onnx/"}), (Names{"README.md"}));
  EXPECT_EQ(selected(kRepository, "", {}, {"generation*"}).size(), 5u);
  EXPECT_THROW(selected(kRepository, "", {"*.gguf"}), Error);
  EXPECT_THROW(selected(kRepository, "", {}, {"model-*"}), Error);
}

TEST(SelectFiles, TakesOneGgufModel) {
  const Names paths = {"M-Q4_K_M.gguf", "M-Q8_0.gguf", "b/M-F16-00001-of-00002.gguf",
                       "b/M-F16-00002-of-00002.gguf", "config.json"};
  EXPECT_EQ(selected(paths), (Names{"M-Q4_K_M.gguf"}));
  EXPECT_EQ(selected(paths, "f16"),
            (Names{"b/M-F16-00001-of-00002.gguf", "b/M-F16-00002-of-00002.gguf"}));
  EXPECT_EQ(selected(paths, "", {}, {"*Q4*"}), (Names{"M-Q8_0.gguf"}));
  const Selection selection = select_files(listing_of(paths), {"o/m", "F16"}, {}, {});
  EXPECT_EQ(selection.opens, "b/M-F16-00001-of-00002.gguf");
  EXPECT_THROW(selected(paths, "Q5_0"), Error);
}

TEST(SelectFiles, TakesAnAdapter) {
  EXPECT_EQ(selected({"README.md", "adapter.safetensors"}), (Names{"adapter.safetensors"}));
  EXPECT_EQ(
      selected({"adapter-00001-of-00001.safetensors", "adapter.safetensors.index.json"}).size(),
      2u);
}

TEST(SelectFiles, RefusesWhatTheEngineCannotRead) {
  EXPECT_THROW(selected({}), Error);
  EXPECT_THROW(selected({"config.json", "tokenizer.json", "pytorch_model.bin"}), Error);
  EXPECT_THROW(selected({"config.json", "model.safetensors", "tokenizer.model"}), Error);
  EXPECT_THROW(selected({"config.json", "tokenizer.json", "model.safetensors.index.json"}), Error);
  EXPECT_THROW(selected({"adapter_model.safetensors", "adapter_config.json"}), Error);
}

}  // namespace
}  // namespace orthrus
