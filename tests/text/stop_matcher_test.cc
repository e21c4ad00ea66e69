#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

struct Result {
  std::string text;
  bool stopped = false;
  bool operator==(const Result&) const = default;
};

/// By the definition: after each byte, does the text end with a stop string?
Result stop_plainly(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

Result stop_in_pieces(const std::vector<std::string>& stops, const std::string& text,
                      std::mt19937& random) {
  StopMatcher matcher(stops);
  Result result;
  for (size_t position = 0; position < text.size();) {
    size_t length = 1 + random() % 4;
    result.text += matcher.push(std::string_view(text).substr(position, length));
    position += length;
  }
  result.text += matcher.finish();
  result.stopped = matcher.stopped();
  return result;
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStop) {
  StopMatcher matcher({"</end>"});
  EXPECT_EQ(matcher.push("one <"), "one ");
  EXPECT_EQ(matcher.push("/e"), "");
  EXPECT_EQ(matcher.push("x </"), "</ex ");
  EXPECT_EQ(matcher.push("end> more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("and more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, FinishGivesBackWhatWasHeld) {
  StopMatcher matcher({"\n\nQ:"});
  EXPECT_EQ(matcher.push("answer\n\nQ"), "answer");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.finish(), "\n\nQ");
}

TEST(StopMatcher, TheFirstCompleteMatchWinsThenTheLongest) {
  std::mt19937 random(1);
  EXPECT_EQ(stop_in_pieces({"c", "abcd"}, "xabcd", random), (Result{"xab", true}));
  EXPECT_EQ(stop_in_pieces({"bc", "abc"}, "xabcd", random), (Result{"x", true}));
  EXPECT_EQ(stop_in_pieces({"aab"}, "aaab", random), (Result{"a", true}));
  EXPECT_EQ(stop_in_pieces({}, "text", random), (Result{"text", false}));
}

TEST(StopMatcher, AgreesWithTheDefinitionHoweverTheTextIsCut) {
  std::mt19937 random(2);
  int stopped = 0;
  auto letters = [&](size_t length) {
    std::string out;
    while (out.size() < length) out.push_back(static_cast<char>('a' + random() % 2));
    return out;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 1 + random() % 3; i > 0; --i) stops.push_back(letters(1 + random() % 7));
    std::string text = letters(random() % 40);
    Result expected = stop_plainly(stops, text);
    EXPECT_EQ(stop_in_pieces(stops, text, random), expected) << text;
    stopped += expected.stopped;
  }
  EXPECT_GT(stopped, 1000);
  EXPECT_LT(stopped, 4900);
}

TEST(StopMatcher, EmptyStopStringsAreRefused) { EXPECT_THROW(StopMatcher({"ok", ""}), Error); }

TEST(StopMatcher, LinearOnRepetitiveText) {
  std::string stop = std::string(100'000, 'a') + "b";
  std::string text(2'000'000, 'a');
  StopMatcher matcher({stop});
  std::string out;
  double seconds = cpu_seconds([&] {
    for (size_t i = 0; i < text.size(); i += 1000) {
      out += matcher.push(std::string_view(text).substr(i, 1000));
    }
  });
  EXPECT_EQ(out.size(), text.size() - 100'000);
  EXPECT_LT(seconds, 2.0 * kSlowBuild);
}

}  // namespace
}  // namespace orthrus
