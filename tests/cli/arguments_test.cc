#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace orthrus {
namespace {

using Words = std::vector<std::string>;

TEST(CanonicalArguments, MapsLlamaCppShortNames) {
  EXPECT_EQ(canonical_arguments({"-ctk", "f32", "-ctv=bf16", "-ub", "64", "-sys", "Be brief."}),
            (Words{"--cache-type-k", "f32", "--cache-type-v=bf16", "--ubatch-size", "64",
                   "--system-prompt", "Be brief."}));
}

TEST(CanonicalArguments, JoinsTextThatStartsWithADash) {
  EXPECT_EQ(canonical_arguments({"-p", "-x", "--stop", "--", "-sys", "-ctk"}),
            (Words{"--prompt=-x", "--stop=--", "--system-prompt=-ctk"}));
}

TEST(CanonicalArguments, LeavesOtherThingsAlone) {
  const Words words = {"-p", "", "-f", "-", "-n", "-1", "-c", "0", "-p", "-"};
  EXPECT_EQ(canonical_arguments(words), words);
}

TEST(CanonicalArguments, TouchesNothingBehindTwoDashes) {
  EXPECT_EQ(canonical_arguments({"-ub", "1", "--", "-ub", "-p", "-x"}),
            (Words{"--ubatch-size", "1", "--", "-ub", "-p", "-x"}));
}

// CLI11 would read these as clusters of short flags: -hff as --help with exit code 0.
TEST(Arguments, WordsBehindOneDashThatAreNoFlagsAreRefused) {
  for (const char* word : {"-ngl", "-hff", "-cnv", "-fa"}) {
    try {
      canonical_arguments({"-m", "model", word, "99"});
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(std::string(error.what()),
                std::string("unknown flag ") + word + ": `orthrus COMMAND --help` lists them");
    }
  }
  const std::vector<std::string> fine = {"-n5", "-5",           "-",    "-v", "-p",
                                         "x",   "--logit-bias", "5-inf"};
  EXPECT_EQ(canonical_arguments(fine), fine);
}

TEST(Arguments, TheLogicalBatchOfLlamaCppIsExplained) {
  for (const char* word : {"-b", "-b512", "-b=512"}) {
    try {
      canonical_arguments({word, "512"});
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("-ub says"), std::string::npos) << error.what();
    }
  }
}

TEST(Arguments, AnEmptyValueIsAValue) {
  EXPECT_EQ(canonical_arguments({"--prompt=", "--seed=1", "-m"}),
            (Words{"--prompt", "", "--seed=1", "-m"}));
}

}  // namespace
}  // namespace orthrus
