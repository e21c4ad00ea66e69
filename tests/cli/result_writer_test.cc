#include "cli/result_writer.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

class Results : public testing::Test {
 protected:
  const std::vector<PromptLine> lines_ = parse_prompt_lines(
      "{\"prompt\": \"a\", \"id\": 1}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n", "in.jsonl");
};

TEST_F(Results, KeepTheOrderOfTheInput) {
  testing::internal::CaptureStdout();
  ResultWriter writer("", lines_);
  writer.add(2, {{"text", "C"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  writer.add(0, {{"text", "A"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"id\":1,\"text\":\"A\"}\n");
  testing::internal::CaptureStdout();
  writer.add_error(1, "too long");
  writer.finish();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"error\":\"too long\"}\n{\"text\":\"C\"}\n");
  EXPECT_EQ(writer.errors(), 1);
}

TEST_F(Results, KeysOfTheCallerNeverStandForThoseOfAResult) {
  const auto lines = parse_prompt_lines(
      R"({"prompt": "a", "error": "mine", "id": 1, "text": 2, "kl_mean": 3, "question": "q"})",
      "in.jsonl");
  testing::internal::CaptureStdout();
  ResultWriter writer("", lines);
  writer.add(0, {{"text", "A"}, {"cycles", 4}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "{\"id\":1,\"question\":\"q\",\"text\":\"A\",\"cycles\":4}\n");
}

TEST_F(Results, AreWrittenAtAnInterrupt) {
  testing::internal::CaptureStdout();
  ResultWriter writer("", lines_);
  writer.add(1, {{"text", "B"}});
  writer.finish();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"text\":\"B\"}\n");
}

TEST_F(Results, NameAnOutputThatCannotBe) {
  EXPECT_THROW(ResultWriter("/no/such/folder/out.jsonl", lines_), Error);
}

}  // namespace
}  // namespace orthrus
