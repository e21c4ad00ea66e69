#include <gtest/gtest.h>

#include <thread>

#include "text/stream_decoder.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

using nlohmann::json;

std::string stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string out;
  for (int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

/// Text, ids and decoded text of the reference library (tests/data/tokenizer).
void check_goldens(const Tokenizer& tokenizer, const std::string& file) {
  std::vector<json> cases = read_jsonl(ORTHRUS_TEST_DATA "/tokenizer/" + file);
  EXPECT_EQ(cases.size(), 384u);
  for (const json& value : cases) {
    auto text = value.at("text").get<std::string>();
    auto ids = value.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(stream(tokenizer, ids, false), value.at("decoded")) << text;
    EXPECT_EQ(stream(tokenizer, ids, true), value.at("decoded_skip_special")) << text;
    std::string bytes = tokenizer.decode(ids);
    if (bytes.find('\xEF') == std::string::npos) {  // no U+FFFD in what is expected
      EXPECT_EQ(bytes, value.at("decoded")) << text;
      EXPECT_EQ(tokenizer.decode(ids, true), value.at("decoded_skip_special")) << text;
    }
  }
}

TEST(TokenizerGolden, Qwen3) { check_goldens(qwen3(), "qwen3.jsonl"); }

TEST(TokenizerGolden, SmolLm2FromGguf) { check_goldens(smollm2(), "smollm2.jsonl"); }

TEST(TokenizerGolden, Qwen3Ids) {
  EXPECT_EQ(qwen3().vocab_size(), 151669);
  EXPECT_EQ(qwen3().token_id("<|im_end|>"), 151645);
  EXPECT_EQ(qwen3().token_id("<think>"), 151667);
  EXPECT_EQ(qwen3().token_id(" the"), 279);
  EXPECT_EQ(qwen3().token_id("no such token"), -1);
  EXPECT_EQ(qwen3().token_bytes(279), " the");
  EXPECT_TRUE(qwen3().is_special(151645));
  EXPECT_FALSE(qwen3().is_special(151667));  // added, but no special token
  EXPECT_FALSE(qwen3().is_special(151669));
  EXPECT_FALSE(qwen3().has_token(-1));
  EXPECT_FALSE(qwen3().has_token(151669));
}

TEST(TokenizerGolden, TinyPrompts) {
  Tokenizer tokenizer = Tokenizer::load(ORTHRUS_TEST_DATA "/tiny/checkpoint");
  EXPECT_EQ(tokenizer.vocab_size(), 1024);
  std::vector<json> cases = read_jsonl(ORTHRUS_TEST_DATA "/tiny/generate.jsonl");
  EXPECT_EQ(cases.size(), 40u);
  for (const json& value : cases) {
    auto prompt = value.at("prompt").get<std::string>();
    auto prompt_ids = value.at("prompt_ids").get<std::vector<int32_t>>();
    std::string text = tokenizer.decode(prompt_ids);
    EXPECT_NE(text.find(prompt), std::string::npos) << text;
    EXPECT_EQ(tokenizer.encode(text), prompt_ids) << text;
    auto answer = value.at("dual_ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.decode(answer), value.at("text"));
  }
}

TEST(TokenizerGolden, LoadsQuickly) {
  const std::string& text = qwen3_json();
  double seconds = cpu_seconds([&] { Tokenizer::from_json(text); });
  EXPECT_LT(seconds, 0.8 * kSlowBuild);  // 0.25 s on an idle machine of 2024
}

TEST(TokenizerGolden, ManyThreadsAgree) {
  std::vector<json> cases = read_jsonl(ORTHRUS_TEST_DATA "/tokenizer/qwen3.jsonl");
  const Tokenizer& tokenizer = qwen3();
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (const json& value : cases) {
        count += tokenizer.encode(value.at("text").get<std::string>()) !=
                 value.at("ids").get<std::vector<int32_t>>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(TokenizerGolden, InvalidUtf8IsEncodedByteByByte) {
  // Bytes are Qwen3's tokens 0 to 255 in the order of GPT-2's alphabet; "\xFF" is the 187th there.
  std::vector<int32_t> ids = qwen3().encode("a\xFF\xC3");
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(qwen3().token_bytes(ids[1]), "\xFF");
  for (const std::string& text : {std::string("\xFF"), std::string("\xE4\xBD"),
                                  std::string("x\xC0\xAFy"), std::string("\xED\xA0\x80 \xF8")}) {
    EXPECT_EQ(qwen3().decode(qwen3().encode(text)), text);
  }
}

TEST(TokenizerGolden, DecodeRefusesUnknownIds) {
  EXPECT_THROW(qwen3().decode(std::vector<int32_t>{5, 151669}), Error);
  EXPECT_THROW(qwen3().decode(std::vector<int32_t>{-1}), Error);
  try {
    qwen3().token_bytes(999999);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token id 999999 is not in the vocabulary of 151669 ids");
  }
}

}  // namespace
}  // namespace orthrus
