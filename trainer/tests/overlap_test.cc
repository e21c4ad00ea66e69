#include "trainer/data/overlap.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/prompt_lines.h"

namespace orthrus::train {
namespace {

std::vector<std::string> prompts_of(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> prompts;
  for (const PromptLine& line : parse_prompt_lines(text, path)) prompts.push_back(*line.prompt);
  return prompts;
}

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

// What the shipped adapter was trained on and what it is measured on.
TEST(Overlap, TrainingPromptsOfTheShippedAdapterHaveNoHeldOutOnes) {
  const std::string recipe = std::string(ORTHRUS_SOURCE_DIR) + "/models/smollm2-135m/recipe";
  Overlap overlap;
  std::vector<std::string> held_out;
  for (const auto& file : std::filesystem::directory_iterator(recipe + "/held-out")) {
    for (const std::string& text : prompts_of(file.path())) held_out.push_back(text);
  }
  EXPECT_EQ(held_out.size(), 300u);
  for (const std::string& text : held_out) {
    overlap.hold_out(text);
    EXPECT_TRUE(overlap.found_in(text));
  }
  size_t checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(recipe + "/prompts")) {
    for (const std::string& text : prompts_of(file.path())) {
      EXPECT_FALSE(overlap.found_in(text)) << file.path() << ": " << text;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10'000u);
}

}  // namespace
}  // namespace orthrus::train
