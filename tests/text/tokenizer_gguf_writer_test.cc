// A tokenizer.json written as GGUF metadata and read again.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "formats/test_files.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"

namespace orthrus {
namespace {

using nlohmann::json;
using testing::TempDir;

json tokenizer_json() {
  return {{"added_tokens",
           {{{"id", 3}, {"content", "<s>"}, {"special", true}},
            {{"id", 4}, {"content", "<e>"}, {"special", true}},
            {{"id", 5}, {"content", "<t>"}, {"special", true}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"1", 0}, {"2", 1}, {"12", 2}}},
            {"merges", json::array({json::array({"1", "2"})})}}}};
}

json split(std::string_view pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", pattern}}}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

/// Writes the directory's tokenizer into a GGUF file and returns its path.
std::string convert(const TempDir& dir, const json& tokenizer, ModelConfig config = {}) {
  dir.write("tokenizer.json", tokenizer.dump());
  if (config.vocab_size == 0) config.vocab_size = 8;
  GgufPairs pairs;
  write_tokenizer_gguf(dir.path(), config, pairs);
  const std::string path = dir.path() + "/out.gguf";
  GgufWriter(path, pairs, {}).commit();
  return path;
}

TEST(TokenizerGgufWriter, NamesThePretokenizer) {
  const auto pre = [](const json& tokenizer) {
    TempDir dir;
    const std::string path = convert(dir, tokenizer);
    EXPECT_EQ(Tokenizer::load(path).encode("12 2"), Tokenizer::load(dir.path()).encode("12 2"));
    const GgufFile file(path);
    return std::string(file.metadata().get<std::string_view>("tokenizer.ggml.pre").value());
  };
  json tokenizer = tokenizer_json();
  EXPECT_EQ(pre(tokenizer), "gpt-2");
  tokenizer["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, tokenizer["pre_tokenizer"]}}};
  EXPECT_EQ(pre(tokenizer), "smollm");
  tokenizer["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
  EXPECT_INPUT_ERROR(pre(tokenizer), "GGUF has no name");
  tokenizer["pre_tokenizer"] = split(kQwen2Pattern);
  EXPECT_INPUT_ERROR(pre(tokenizer), "GGUF has no name");
  tokenizer["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(pre(tokenizer), "qwen2");
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = split(kLlama3Pattern);
  tokenizer["model"]["ignore_merges"] = true;
  EXPECT_EQ(pre(tokenizer), "llama-bpe");
}

TEST(TokenizerGgufWriter, BosAndEnds) {
  TempDir dir;
  dir.write("tokenizer_config.json",
            R"({"bos_token": "<s>", "eos_token": {"content": "<t>"}, "chat_template": "hello"})");
  ModelConfig config;
  config.eos_token_ids = {4, 5, 0, 1};
  const GgufFile plain(convert(dir, tokenizer_json(), config));
  const auto id = [](const GgufFile& file, const char* key) {
    return file.metadata().get<int64_t>(std::string("tokenizer.ggml.") + key).value_or(-1);
  };
  EXPECT_EQ(id(plain, "bos_token_id"), 3);
  EXPECT_EQ(plain.metadata().get<bool>("tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(id(plain, "eos_token_id"), 5);  // as the template knows it
  EXPECT_EQ(id(plain, "eot_token_id"), 4);
  EXPECT_EQ(id(plain, "eom_token_id"), 0);
  EXPECT_EQ(plain.metadata().get<std::string_view>("tokenizer.chat_template"), "hello");

  json tokenizer = tokenizer_json();
  const json piece = {{"SpecialToken", {{"id", "<e>"}}}};
  tokenizer["post_processor"] = {{"type", "TemplateProcessing"},
                                 {"single", {piece, {{"Sequence", {{"id", "A"}}}}}}};
  const std::string path = convert(dir, tokenizer, config);
  EXPECT_EQ(id(GgufFile(path), "bos_token_id"), 4);
  EXPECT_EQ(Tokenizer::load(path).encode("1", true), (std::vector<int32_t>{4, 0}));
  tokenizer["post_processor"]["single"] = {piece, piece, {{"Sequence", {{"id", "A"}}}}};
  EXPECT_INPUT_ERROR(convert(dir, tokenizer, config), "2 tokens go before a text");
}

TEST(TokenizerGgufWriter, EveryTokenNeedsARow) {
  TempDir dir;
  ModelConfig config;
  config.vocab_size = 5;
  EXPECT_INPUT_ERROR(convert(dir, tokenizer_json(), config),
                     "token \"<t>\" has id 5, expected an id below the 5 rows of the embedding");
}

}  // namespace
}  // namespace orthrus
