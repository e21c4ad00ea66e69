#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

/// What a GGUF file of only a tokenizer says.
struct Spec {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  Strings tokens = {"a", "b", "1", "Ġ", "ab", "Ġa", "11", "<s>", "[X]", "e", "Ì", "ģ", "Ã", "©"};
  Strings merges = {"a b", "Ġ a", "1 1"};
  std::vector<int32_t> types = {1, 1, 1, 1, 1, 1, 1, 3, 4, 1, 1, 1, 1, 1};
  std::optional<bool> add_bos;
  int32_t bos = 7;
};

/// Writes GGUF version 3 (ggml's gguf.md), little endian.
class GgufWriter {
 public:
  explicit GgufWriter(uint64_t entries) {
    out_ = "GGUF";
    number<uint32_t>(3);
    number<uint64_t>(0);  // tensors
    number(entries);
  }
  void entry(const std::string& key, const std::string& value) {
    string(key);
    number<uint32_t>(kString);
    string(value);
  }
  void entry(const std::string& key, bool value) {
    string(key);
    number<uint32_t>(kBool);
    out_ += value ? '\1' : '\0';
  }
  void entry(const std::string& key, int32_t value) {
    string(key);
    number<uint32_t>(kInt32);
    number(value);
  }
  void entry(const std::string& key, const Strings& values) {
    array(key, kString, values.size());
    for (const std::string& value : values) string(value);
  }
  void entry(const std::string& key, const std::vector<int32_t>& values) {
    array(key, kInt32, values.size());
    for (int32_t value : values) number(value);
  }
  const std::string& bytes() const { return out_; }

 private:
  static constexpr uint32_t kInt32 = 5;
  static constexpr uint32_t kBool = 7;
  static constexpr uint32_t kString = 8;
  static constexpr uint32_t kArray = 9;

  template <typename T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void string(const std::string& value) {
    number<uint64_t>(value.size());
    out_ += value;
  }
  void array(const std::string& key, uint32_t type, size_t size) {
    string(key);
    number(kArray);
    number(type);
    number<uint64_t>(size);
  }

  std::string out_;
};

class TokenizerGguf : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("orthrus_tokenizer_" + std::to_string(getpid()) + ".gguf");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Tokenizer load(const Spec& spec) {
    GgufWriter writer(spec.add_bos ? 7 : 6);
    writer.entry("tokenizer.ggml.model", spec.model);
    writer.entry("tokenizer.ggml.pre", spec.pre);
    writer.entry("tokenizer.ggml.tokens", spec.tokens);
    writer.entry("tokenizer.ggml.merges", spec.merges);
    writer.entry("tokenizer.ggml.token_type", spec.types);
    writer.entry("tokenizer.ggml.bos_token_id", spec.bos);
    if (spec.add_bos) writer.entry("tokenizer.ggml.add_bos_token", *spec.add_bos);
    std::ofstream(path_, std::ios::binary) << writer.bytes();
    return Tokenizer::load(path_.string());
  }

  Ids encode(const std::string& pre, const std::string& text) {
    Spec spec;
    spec.pre = pre;
    return load(spec).encode(text);
  }

  std::string refusal(const Spec& spec) {
    try {
      load(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path path_;
};

TEST_F(TokenizerGguf, TokenTypes) {
  Tokenizer tokenizer = load({});
  EXPECT_EQ(tokenizer.encode("ab a<s>[X]"), (Ids{4, 5, 7, 8}));
  EXPECT_TRUE(tokenizer.is_special(7));
  EXPECT_FALSE(tokenizer.is_special(8));
  EXPECT_EQ(tokenizer.decode(Ids{5, 7, 8}, true), " a[X]");
  EXPECT_EQ(tokenizer.vocab_size(), 14);
}

TEST_F(TokenizerGguf, UnusedTokensAreNone) {
  Spec spec;
  spec.tokens.push_back("[PAD14]");
  spec.types.push_back(5);
  EXPECT_FALSE(load(spec).has_token(14));
}

TEST_F(TokenizerGguf, PreNamesAreTheModelsPatterns) {
  // Digits: GPT-2 and Llama 3 keep two together, SmolLM2 and Qwen do not.
  for (const char* pre : {"gpt-2", "default", "llama-bpe", "llama3"}) {
    EXPECT_EQ(encode(pre, "a11"), (Ids{0, 6})) << pre;
  }
  for (const char* pre : {"smollm", "qwen2"}) EXPECT_EQ(encode(pre, "a11"), (Ids{0, 2, 2})) << pre;
  // Only GPT-2's and SmolLM2's take the space before a digit into its piece; Qwen's text is NFC.
  EXPECT_EQ(encode("qwen2", "e\u0301"), (Ids{12, 13}));
  EXPECT_EQ(encode("llama-bpe", "e\u0301"), (Ids{9, 10, 11}));
}

TEST_F(TokenizerGguf, TheBosTokenComesFirstWhereTheFileWantsIt) {
  const auto encoded = [&](const char* pre, std::optional<bool> add_bos) {
    Spec spec;
    spec.pre = pre;
    spec.add_bos = add_bos;
    return load(spec).encode("ab", true);
  };
  EXPECT_EQ(encoded("smollm", std::nullopt), (Ids{4}));
  EXPECT_EQ(encoded("smollm", true), (Ids{7, 4}));
  EXPECT_EQ(encoded("llama-bpe", std::nullopt), (Ids{7, 4}));
  EXPECT_EQ(encoded("llama-bpe", false), (Ids{4}));
  Spec outside;
  outside.add_bos = true;
  outside.bos = 14;
  EXPECT_NE(refusal(outside).find("bos_token_id 14, expected an id below 14"), std::string::npos);
}

TEST_F(TokenizerGguf, LlamaIgnoresMerges) {
  Spec spec;
  spec.merges = {};
  EXPECT_EQ(load(spec).encode("ab"), (Ids{0, 1}));
  spec.pre = "llama-bpe";
  EXPECT_EQ(load(spec).encode("ab"), (Ids{4}));
}

TEST_F(TokenizerGguf, WhatIsNotSupportedIsNamed) {
  auto check = [&](auto change, const char* part) {
    Spec spec;
    change(spec);
    std::string message = refusal(spec);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(path_.string())) << message;
  };
  check([](Spec& spec) { spec.model = "t5"; }, "tokenizer.ggml.model \"t5\"");
  check([](Spec& spec) { spec.pre = "viking"; }, "tokenizer.ggml.pre \"viking\"");
  check([](Spec& spec) { spec.types.pop_back(); }, "token_type has 13 entries");
  check([](Spec& spec) { spec.merges[1] = "Ġa"; }, "merge 1 \"");
  check([](Spec& spec) { spec.merges[1] = "a z"; }, "merge 1 (\"a\" and \"z\")");
  check([](Spec& spec) { spec.tokens[8] = std::string(600, 'x'); }, "has 600 bytes");
}

TEST_F(TokenizerGguf, AFileWithoutATokenizer) {
  std::ofstream(path_, std::ios::binary) << GgufWriter(0).bytes();
  try {
    Tokenizer::load(path_.string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no tokenizer.ggml.model"), std::string::npos);
  }
}

TEST(TokenizerDemo, SpecialTokens) {
  EXPECT_EQ(smollm2().vocab_size(), 49152);
  EXPECT_EQ(smollm2().token_id("<|im_start|>"), 1);
  EXPECT_TRUE(smollm2().is_special(2));
  EXPECT_EQ(smollm2().encode("<|im_start|>user\n12<|im_end|>"), (Ids{1, 4093, 198, 33, 34, 2}));
}

}  // namespace
}  // namespace orthrus
