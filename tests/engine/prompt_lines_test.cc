#include "engine/prompt_lines.h"

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
  EXPECT_EQ(error_of("{\"text\": \"a\", \"id\": 1}"),
            "in.jsonl:1: the line has no prompt: expected \"prompt\", \"question\", \"messages\", "
            "\"token_ids\" or \"prompt_ids\", its keys are \"text\", \"id\"");
  EXPECT_NE(error_of("{}").find("its keys are none"), std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": 3}").find("\"prompt\": expected a string"), std::string::npos);
  EXPECT_NE(error_of("{\"token_ids\": [-1]}").find("\"token_ids\": expected a whole number"),
            std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": \"a\", \"max_tokens\": 1e99}").find("\"max_tokens\""),
            std::string::npos);
  EXPECT_NE(error_of("{\"prompt\": \"a\", \"seed\": 18446744073709551615}").find("\"seed\""),
            std::string::npos);
}

TEST(PromptLines, TheMostExactFormCountsAndTheOthersComeBack) {
  const auto lines = parse_prompt_lines(
      "{\"prompt\": \"Hi\", \"prompt_ids\": [3, 4]}\n{\"question\": \"Why?\", \"answer\": "
      "\"So.\"}\n"
      "{\"messages\": [], \"question\": \"Why?\"}",
      "in.jsonl");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].token_ids, (std::vector<int32_t>{3, 4}));
  EXPECT_FALSE(lines[0].prompt);
  EXPECT_EQ(lines[0].extra.dump(), R"({"prompt":"Hi"})");
  EXPECT_EQ(lines[1].prompt, "Why?");
  EXPECT_EQ(lines[1].extra.dump(), R"({"answer":"So."})");
  EXPECT_TRUE(lines[2].messages);
  EXPECT_FALSE(lines[2].prompt);
}

TEST(PromptLines, ChatsKeepTheOrderOfKeysInToolsAndAddToVariables) {
  const auto lines = parse_prompt_lines(
      R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"z": 1, "a": 2}],)"
      R"( "kwargs": {"thinking": false}})",
      "in.jsonl");
  nlohmann::ordered_json request = {{"messages", nlohmann::ordered_json::array()},
                                    {"kwargs", {{"thinking", true}, {"style", "short"}}}};
  lines.at(0).add_chat(request);
  EXPECT_EQ(request.dump(),
            R"({"messages":[{"role":"user","content":"x"}],)"
            R"("kwargs":{"thinking":false,"style":"short"},"tools":[{"z":1,"a":2}]})");
}

TEST(PromptLines, NoLineBehindTheLimitIsRead) {
  EXPECT_EQ(parse_prompt_lines("{\"prompt\": \"a\"}\n\nnonsense", "in.jsonl", 1).size(), 1u);
}

}  // namespace
}  // namespace orthrus
