#include "trainer/data/overlap.h"

#include <gtest/gtest.h>

namespace orthrus::train {
namespace {

constexpr const char* kQuestion =
    "A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total "
    "does it take?";

TEST(Overlap, FindsThirteenWordsInARow) {
  Overlap overlap;
  overlap.hold_out(kQuestion);
  EXPECT_TRUE(overlap.found_in(kQuestion));
  // Neither case nor punctuation counts; 13 words of it are enough.
  EXPECT_TRUE(
      overlap.found_in("Say: ROBE takes 2 bolts (of blue fiber), and half that much white fiber!"));
  // Twelve are not.
  EXPECT_FALSE(
      overlap.found_in("Say: takes 2 bolts of blue fiber and half that much white fiber?"));
  EXPECT_FALSE(
      overlap.found_in("A robe takes 3 bolts of blue fiber and half that much white "
                       "fiber; how few bolts in total does it take"));
  EXPECT_FALSE(overlap.found_in(""));
}

TEST(Overlap, ShortTextsCountAsAWhole) {
  Overlap overlap;
  overlap.hold_out("What is the capital of France?");
  EXPECT_TRUE(overlap.found_in("what is the capital of france"));
  EXPECT_FALSE(overlap.found_in("What is the capital of France and of Spain?"));
}

}  // namespace
}  // namespace orthrus::train
