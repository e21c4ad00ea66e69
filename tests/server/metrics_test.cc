#include "server/metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace orthrus {
namespace {

/// The value of a sample as it is written, "" where there is none.
std::string value(Metrics& metrics, const std::string& sample) {
  const std::string text = "\n" + metrics.text(nullptr, 0);
  const std::string name = "\n" + sample + " ";
  const size_t at = text.find(name);
  if (at == text.npos) return "";
  const size_t begin = at + name.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// An answer after one cycle of seven drafts, three of them accepted.
GenerateResult after_one_cycle() {
  GenerateResult result;
  result.token_ids = {1, 2, 3, 4, 5};
  result.cycles = 1;
  result.forward_passes = 3;
  result.drafted = 7;
  result.accepted = 3;
  result.drafted_per_cycle = {7};
  result.accepted_per_cycle = {3};
  result.prompt_tokens = 9;
  return result;
}

TEST(Metrics, WorkIsCountedWhenItIsDone) {
  Metrics metrics("1");
  metrics.set_model({"m", "bf16", true, 8});
  EXPECT_EQ(value(metrics, "orthrus_drafted_at_position_total{position=\"7\"}"), "0");
  EXPECT_EQ(value(metrics, "orthrus_drafted_at_position_total{position=\"8\"}"), "");
  Metrics::Counted counted;
  GenerateResult result = after_one_cycle();
  metrics.worked(result, counted);
  const auto check = [&](const char* tokens, const char* cycles, const char* passes,
                         const char* drafted, const char* accepted) {
    EXPECT_EQ(value(metrics, "orthrus_generated_tokens_total"), tokens);
    EXPECT_EQ(value(metrics, "orthrus_cycles_total"), cycles);
    EXPECT_EQ(value(metrics, "orthrus_forward_passes_total"), passes);
    EXPECT_EQ(value(metrics, "orthrus_draft_tokens_total"), drafted);
    EXPECT_EQ(value(metrics, "orthrus_accepted_tokens_total"), accepted);
  };
  check("5", "1", "3", "7", "3");
  metrics.worked(result, counted);  // nothing new
  check("5", "1", "3", "7", "3");
  EXPECT_EQ(value(metrics, "orthrus_drafted_at_position_total{position=\"7\"}"), "1");
  EXPECT_EQ(value(metrics, "orthrus_accepted_at_position_total{position=\"3\"}"), "1");
  EXPECT_EQ(value(metrics, "orthrus_accepted_at_position_total{position=\"4\"}"), "0");

  result.forward_passes = 2;  // preempted: its draft pass is to be repeated
  metrics.worked(result, counted);
  check("5", "1", "3", "7", "3");
  result.token_ids.insert(result.token_ids.end(), {6, 7});
  result.cycles = 2;
  result.forward_passes = 4;
  result.drafted = 9;
  result.accepted = 4;
  result.drafted_per_cycle.push_back(2);
  result.accepted_per_cycle.push_back(1);
  metrics.worked(result, counted);
  metrics.answered("/v1/completions", result, 0.5);
  check("7", "2", "4", "9", "4");
  EXPECT_EQ(value(metrics, "orthrus_drafted_at_position_total{position=\"2\"}"), "2");
  EXPECT_EQ(value(metrics, "orthrus_drafted_at_position_total{position=\"3\"}"), "1");
  EXPECT_EQ(value(metrics, "orthrus_prompt_tokens_total"), "9");
}

TEST(Metrics, AnswersThatFailHaveCountedTheirTokens) {
  Metrics metrics("1");
  Metrics::Counted counted, other;
  metrics.worked(after_one_cycle(), counted);
  metrics.worked(after_one_cycle(), other);
  metrics.failed("/v1/completions", Outcome::kError);
  EXPECT_EQ(value(metrics, "orthrus_generated_tokens_total"), "10");
  EXPECT_EQ(
      value(metrics, "orthrus_requests_total{endpoint=\"/v1/completions\",outcome=\"error\"}"),
      "1");
}

}  // namespace
}  // namespace orthrus
