#include <gtest/gtest.h>

#include <random>

#include "text/pretokenizer.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

constexpr size_t kMegabyte = 1'000'000;

std::string repeat(const std::string& unit, size_t bytes = kMegabyte) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

std::string random_letters() {
  std::mt19937 random(7);
  std::string out;
  while (out.size() < kMegabyte) out.push_back(static_cast<char>('a' + random() % 26));
  return out;
}

/// 1 MB each of what drives a regex, a merge loop or a normaliser into quadratic time.
std::vector<std::pair<std::string, std::string>> hard_texts() {
  return {{"a", repeat("a")},
          {"spaces", repeat(" ")},
          {"spaces before a letter", repeat(" ") + "a"},
          {"runs of spaces", repeat(std::string(3000, ' ') + "x")},
          {"newlines", repeat("\n")},
          {"spaces and newlines", repeat(" \n")},
          {"emoji", repeat("😀")},
          {"families", repeat("👨‍👩‍👧‍👦")},
          {"one long word", repeat("antidisestablishmentarianism")},
          {"one word of random letters", random_letters()},
          {"digits", repeat("0123456789")},
          {"punctuation", repeat("!?")},
          {"apostrophes", repeat("'")},
          {"combining marks", repeat("\xCC\x81\xCC\xA3")},
          {"ideographs", repeat("漢字")},
          {"starts of special tokens", repeat("<|im_star")},
          {"special tokens", repeat("<|im_start|>")},
          {"invalid bytes", repeat("\xC3(")}};
}

void check_speed(const Tokenizer& tokenizer) {
  for (const auto& hard : hard_texts()) {
    size_t tokens = 0;
    const double seconds = cpu_seconds([&] { tokens = tokenizer.encode(hard.second).size(); });
    EXPECT_GT(tokens, 0u) << hard.first;
    EXPECT_LT(seconds, 1.0 * kSlowBuild) << hard.first;
  }
}

TEST(TokenizerSpeed, Qwen3NeedsLessThanASecondAMegabyte) { check_speed(qwen3()); }

TEST(TokenizerSpeed, TinyNeedsLessThanASecondAMegabyte) {
  check_speed(Tokenizer::load(ORTHRUS_TEST_DATA "/tiny/checkpoint"));
}

TEST(TokenizerSpeed, SmolLM2FromItsGgufNeedsLessThanASecondAMegabyte) { check_speed(smollm2()); }

/// A vocabulary of Llama 3's size (Qwen3's) in Llama 3's ways: its pattern, no normaliser, words
/// that are tokens taken whole.
Tokenizer llama3_style() {
  nlohmann::json file = nlohmann::json::parse(qwen3_json());
  file["normalizer"] = nullptr;
  file["model"]["ignore_merges"] = true;
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = kLlama3Pattern;
  return Tokenizer::from_json(file.dump());
}

TEST(TokenizerSpeed, Llama3StyleNeedsLessThanASecondAMegabyte) {
  const Tokenizer tokenizer = llama3_style();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("it's 1234")), "it's 1234");
  check_speed(tokenizer);
}

TEST(TokenizerSpeed, NearlyLinear) {
  for (const char* unit : {"a", " ", "\xCC\x81\xCC\xA3"}) {
    std::string small = repeat(unit, kMegabyte / 8);
    std::string large = repeat(unit);
    double small_seconds = cpu_seconds([&] { qwen3().encode(small); });
    double large_seconds = cpu_seconds([&] { qwen3().encode(large); });
    // Eight times the text: quadratic time would take 64 times as long.
    EXPECT_LT(large_seconds, 24 * small_seconds + 0.05) << unit;
  }
}

}  // namespace
}  // namespace orthrus
