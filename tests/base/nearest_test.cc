#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace orthrus {
namespace {

const std::vector<std::string> kFlags = {"temp", "top-k", "top-p", "threads", "repeat-penalty"};

TEST(Nearest, FindsTypingMistakes) {
  EXPECT_EQ(nearest("tmep", kFlags), "temp");
  EXPECT_EQ(nearest("thread", kFlags), "threads");
  EXPECT_EQ(nearest("top_p", kFlags), "top-p");
  EXPECT_EQ(nearest("repeatpenalty", kFlags), "repeat-penalty");
}

TEST(Nearest, TakesTheFirstOfEquals) { EXPECT_EQ(nearest("top-q", kFlags), "top-k"); }

TEST(Nearest, NamesNothingThatIsFar) {
  EXPECT_EQ(nearest("xyzzy", kFlags), "");
  EXPECT_EQ(nearest("tea", kFlags), "");  // 2 of 4 letters
  EXPECT_EQ(nearest("tem", kFlags), "temp");
  EXPECT_EQ(nearest("repeat-last", kFlags), "");
}

TEST(Nearest, Hints) {
  EXPECT_EQ(nearest_hint("tmep", kFlags, "--"), " (the nearest is --temp)");
  EXPECT_EQ(nearest_hint("xyzzy", kFlags, "--"), "");
}

TEST(Nearest, CopesWithEmptyAndHugeWords) {
  EXPECT_EQ(nearest("", kFlags), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'x'), kFlags), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace orthrus
