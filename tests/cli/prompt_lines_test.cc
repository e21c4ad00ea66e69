#include "cli/prompt_lines.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_prompt_lines(text, "in.jsonl");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PromptLines, ReadsTheThreeKindsAndKeepsOtherKeys) {
  const auto lines = parse_prompt_lines(
      "{\"prompt\": \"Hi\", \"max_tokens\": 5, \"id\": \"a\"}\n\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"seed\": 18}\r\n"
      "{\"token_ids\": [1, 2]}",
      "in.jsonl");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].prompt, "Hi");
  EXPECT_EQ(lines[0].max_tokens, 5);
  EXPECT_EQ(lines[0].extra.dump(), R"({"id":"a"})");
  EXPECT_EQ(lines[1].messages->dump(), R"([{"role":"user","content":"x"}])");  // order kept
  EXPECT_EQ(lines[1].seed, 18u);
  EXPECT_EQ(lines[2].token_ids, (std::vector<int32_t>{1, 2}));
}

TEST(PromptLines, NamesTheLineThatIsWrong) {
  EXPECT_NE(error_of("{\"prompt\": \"a\"}\n{").find("in.jsonl:2"), std::string::npos);
  EXPECT_NE(error_of("[1]").find("in.jsonl:1: expected a JSON object"), std::string::npos);
  EXPECT_NE(error_of("{}").find("expected one of"), std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": \"a\", \"token_ids\": []}").find("found 2"), std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": 3}").find("\"prompt\": expected a string"), std::string::npos);
  EXPECT_NE(error_of("{\"token_ids\": [-1]}").find("\"token_ids\": expected a whole number"),
            std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": \"a\", \"max_tokens\": 1e99}").find("\"max_tokens\""),
            std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": \"a\", \"seed\": 18446744073709551615}").find("\"seed\""),
            std::string::npos);
}

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
