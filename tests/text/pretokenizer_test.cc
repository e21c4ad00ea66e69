#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(std::vector<SplitStep> steps, std::string_view text) {
  RegexBudget budget(text.size());
  return Pretokenizer(std::move(steps)).split(text, budget);
}

SplitStep pattern(std::string_view regex, SplitBehavior behavior = SplitBehavior::kIsolated,
                  bool invert = false) {
  return RegexSplit{Regex(std::string(regex), "test"), behavior, invert};
}

TEST(Pretokenizer, Gpt2) {
  EXPECT_EQ(split({pattern(kGpt2Pattern)}, "It's 2024,  ok?\n\nyes"),
            (Pieces{"It", "'s", " 2024", ",", " ", " ok", "?", "\n", "\n", "yes"}));
  EXPECT_EQ(split({pattern(kGpt2Pattern)}, "I'LL a  "), (Pieces{"I", "'", "LL", " a", "  "}));
}

TEST(Pretokenizer, Qwen2) {
  EXPECT_EQ(split({pattern(kQwen2Pattern)}, "I'LL pay 25€!\n\n  (x)"),
            (Pieces{"I", "'LL", " pay", " ", "2", "5", "€!\n\n", " ", " (", "x", ")"}));
}

TEST(Pretokenizer, Llama3) {
  EXPECT_EQ(split({pattern(kLlama3Pattern)}, "a12345 \n b"),
            (Pieces{"a", "123", "45", " \n", " b"}));
}

TEST(Pretokenizer, ALookAheadStopsAtThePieceEnd) {
  // On the whole text the two spaces before 7 would be cut into " " and " 7".
  EXPECT_EQ(split({DigitSplit{true}, pattern(kGpt2Pattern)}, "a  7b"),
            (Pieces{"a", "  ", "7", "b"}));
}

TEST(Pretokenizer, Digits) {
  EXPECT_EQ(split({DigitSplit{true}}, "ab12½٣c"), (Pieces{"ab", "1", "2", "½", "٣", "c"}));
  EXPECT_EQ(split({DigitSplit{false}}, "12ab34"), (Pieces{"12", "ab", "34"}));
  EXPECT_EQ(split({DigitSplit{true}}, ""), Pieces{});
}

TEST(Pretokenizer, Behaviors) {
  // The examples of the `tokenizers` library's own documentation.
  const char* text = "the-final--countdown";
  auto with = [&](SplitBehavior behavior) { return split({pattern("-", behavior)}, text); };
  EXPECT_EQ(with(SplitBehavior::kRemoved), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(with(SplitBehavior::kIsolated), (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(with(SplitBehavior::kMergedWithPrevious), (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(with(SplitBehavior::kMergedWithNext), (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(with(SplitBehavior::kContiguous), (Pieces{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split({pattern("-", SplitBehavior::kRemoved, true)}, text), (Pieces{"-", "-", "-"}));
}

TEST(Pretokenizer, EmptyMatches) {
  EXPECT_EQ(split({pattern("x*")}, "axxb"), (Pieces{"a", "xx", "b"}));
  EXPECT_EQ(split({pattern("")}, "aé"), (Pieces{"a", "é"}));
}

TEST(Pretokenizer, NoPieceIsLost) {
  std::string text = "Zoë's 3 cafés:\r\n\t\"naïve\"   \u3000 ½ 你好!!  \n \n\n";
  for (std::string_view regex : {kGpt2Pattern, kQwen2Pattern, kLlama3Pattern}) {
    std::string joined;
    for (std::string_view piece : split({pattern(regex)}, text)) joined += piece;
    EXPECT_EQ(joined, text);
  }
}

TEST(Pretokenizer, BadPatternsAreRefused) {
  for (const std::string& regex : {std::string("(a"), std::string("[z-a]"),
                                   std::string("\\p{Nope}"), std::string(5000, 'a')}) {
    EXPECT_THROW(Regex(regex, "test"), Error) << regex;
  }
}

TEST(Pretokenizer, ExponentialPatternsEndWithAnError) {
  std::string text = std::string(40, 'a') + "!";
  double seconds = cpu_seconds([&] {
    try {
      split({pattern("(a+)+$")}, text);
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("too many steps"), std::string::npos);
    }
  });
  EXPECT_LT(seconds, 1.0 * kSlowBuild);
}

TEST(Pretokenizer, TheBudgetIsSharedByAllPieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::string(40, 'a') + "!\n";
  double seconds = cpu_seconds([&] {
    EXPECT_THROW(split({pattern("\\n"), pattern("(a+)+$")}, text), Error);
  });
  EXPECT_LT(seconds, 2.0 * kSlowBuild);
}

TEST(Pretokenizer, AMatchBeforeItsStartIsRefused) {
  EXPECT_THROW(split({pattern("a|(?<=\\Ka)b")}, "ab"), Error);
}

}  // namespace
}  // namespace orthrus
