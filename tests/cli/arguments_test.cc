#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/foreign_flags.h"

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

std::string error_of(const Words& arguments) {
  try {
    canonical_arguments(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

// CLI11 would read these as clusters of short flags: -hx as --help with exit code 0.
TEST(Arguments, WordsBehindOneDashThatAreNoFlagsAreRefused) {
  for (const std::string word : {"-hx", "-nope", "-fax"}) {
    EXPECT_EQ(error_of({"-m", "model", word, "99"}),
              "unknown flag " + word + ": `orthrus COMMAND --help` lists them");
  }
  const std::vector<std::string> fine = {"-n5", "-5",           "-",    "-v", "-p",
                                         "x",   "--logit-bias", "5-inf"};
  EXPECT_EQ(canonical_arguments(fine), fine);
}

TEST(Arguments, FlagsOfLlamaCppAreExplained) {
  for (const char* word : {"-ngl", "-ngl=99"}) {
    EXPECT_EQ(error_of({"-m", "model", word, "99"}),
              "no flag -ngl here: the CPU does all work, on the threads of -t");
  }
  EXPECT_EQ(error_of({"-fa"}), "no flag -fa here: there is one kind of attention, for any length");
  for (const char* word : {"-b", "-b512", "-b=512"}) {
    EXPECT_NE(error_of({word, "512"}).find("no flag -b here: "), std::string::npos);
  }
}

TEST(ForeignFlags, AreKnownByTheirWholeNames) {
  EXPECT_EQ(foreign_flag_hint("--gpu-layers"), "the CPU does all work, on the threads of -t");
  EXPECT_EQ(foreign_flag_hint("--n-cpu-moe"), "the CPU does all work, on the threads of -t");
  EXPECT_EQ(foreign_flag_hint("--allowed-origins"), "serve has --cors-origin");
  EXPECT_EQ(foreign_flag_hint("--keep"), "an answer ends where the context does");
  for (const char* flag : {"", "-", "--", "-n", "--gpu", "gpu-layers", "--temp", " ", "-ng"}) {
    EXPECT_EQ(foreign_flag_hint(flag), "") << flag;
  }
}

TEST(Arguments, AnEmptyValueIsAValue) {
  EXPECT_EQ(canonical_arguments({"--prompt=", "--seed=1", "-m"}),
            (Words{"--prompt", "", "--seed=1", "-m"}));
}

}  // namespace
}  // namespace orthrus
