#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "text/utf8.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

const std::string kBad = "\uFFFD";

std::string replace_invalid(std::string bytes) {
  std::string out;
  drain_utf8(bytes, true, out);
  EXPECT_EQ(bytes, "");
  return out;
}

TEST(Utf8, ReplacesAsPythonDoes) {
  // Expected values: bytes.decode("utf-8", errors="replace") of CPython.
  EXPECT_EQ(replace_invalid("aé漢😀"), "aé漢😀");
  EXPECT_EQ(replace_invalid("\x80"), kBad);
  EXPECT_EQ(replace_invalid("\xC3"), kBad);
  EXPECT_EQ(replace_invalid("\xC3("), kBad + "(");
  EXPECT_EQ(replace_invalid("\xC0\xAF"), kBad + kBad);
  EXPECT_EQ(replace_invalid("\xE2\x82"), kBad);
  EXPECT_EQ(replace_invalid("\xE2\x82x"), kBad + "x");
  EXPECT_EQ(replace_invalid("\xE0\x80\xAF"), kBad + kBad + kBad);
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), kBad + kBad + kBad);  // a surrogate
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), kBad);
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98\xF0\x9F\x98\x80"), kBad + "😀");
  EXPECT_EQ(replace_invalid("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad);
  EXPECT_EQ(replace_invalid("\xF8\x88\x80\x80\x80"), kBad + kBad + kBad + kBad + kBad);
  EXPECT_EQ(replace_invalid("\xFF\xFE"), kBad + kBad);
}

TEST(Utf8, EveryCodePointIsReadBack) {
  for (char32_t codepoint = 0; codepoint <= 0x10FFFF; ++codepoint) {
    if (codepoint == 0xD800) codepoint = 0xE000;
    std::string text;
    append_utf8(text, codepoint);
    Utf8Char character = utf8_at(text, 0);
    ASSERT_EQ(character.kind, Utf8Char::Kind::kValid);
    ASSERT_EQ(character.length, text.size());
    ASSERT_EQ(character.codepoint, codepoint);
  }
}

TEST(StreamDecoder, HoldsUnfinishedCharactersBack) {
  const Tokenizer& tokenizer = qwen3();
  StreamDecoder decoder(tokenizer);
  auto byte = [&](const char* text) { return tokenizer.token_id(text); };
  EXPECT_EQ(decoder.push(byte("a")), "a");
  EXPECT_EQ(decoder.push(byte("\xF0")), "");
  EXPECT_EQ(decoder.push(byte("\x9F")), "");
  EXPECT_EQ(decoder.push(byte("\x98")), "");
  EXPECT_EQ(decoder.push(byte("\x80")), "😀");
  EXPECT_EQ(decoder.push(byte("\xE2")), "");
  EXPECT_EQ(decoder.push(byte("x")), kBad + "x");
  EXPECT_EQ(decoder.push(byte("\xE2")), "");
  EXPECT_EQ(decoder.finish(), kBad);
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, SpecialTokensAndIdsWithoutAToken) {
  const Tokenizer& tokenizer = qwen3();
  int32_t end = tokenizer.token_id("<|im_end|>");
  int32_t think = tokenizer.token_id("<think>");
  StreamDecoder skipping(tokenizer);
  EXPECT_EQ(skipping.push(end), "");
  EXPECT_EQ(skipping.push(think), "<think>");
  EXPECT_EQ(skipping.push(151700), "");
  EXPECT_EQ(skipping.push(-1), "");
  StreamDecoder showing(tokenizer, false);
  EXPECT_EQ(showing.push(end), "<|im_end|>");
}

TEST(StreamDecoder, AnyTokensGiveTheTextOfAllBytesAtOnce) {
  const Tokenizer& tokenizer = qwen3();
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    StreamDecoder decoder(tokenizer);
    std::vector<int32_t> ids;
    std::string text;
    for (int i = 0; i < 30; ++i) {
      // Ids below 256 are single bytes: mostly invalid sequences.
      ids.push_back(static_cast<int32_t>(random() % (round % 2 ? 256 : 151643)));
      text += decoder.push(ids.back());
      EXPECT_EQ(replace_invalid(text), text);
    }
    text += decoder.finish();
    EXPECT_EQ(text, replace_invalid(tokenizer.decode(ids)));
  }
}

}  // namespace
}  // namespace orthrus
