#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

std::string read(const std::string& messages) {
  return parse_chat_request(R"({"messages": )" + messages + "}", test_context())
      .context["messages"]
      .dump();
}

std::string error_of(const std::string& messages) {
  return api_error_of([&] { read(messages); });
}

TEST(ApiMessages, BecomeWhatTemplatesExpect) {
  EXPECT_EQ(read(R"([{"role": "developer", "content": "be kind"},
                     {"role": "user", "content": [{"type": "text", "text": "a"},
                                                  {"type": "text", "text": "b"}], "name": "n"}])"),
            R"([{"role":"system","content":"be kind"},)"
            R"({"role":"user","content":"a\nb","name":"n"}])");
}

TEST(ApiMessages, ToolCallsComeBackWithArgumentsAsObjects) {
  // As the client library dumps an answer.
  EXPECT_EQ(
      read(R"([{"role": "user", "content": "x"},
               {"role": "assistant", "content": null, "refusal": null, "annotations": [],
                "audio": null, "function_call": null, "reasoning_content": "hm",
                "tool_calls": [{"id": "call_1", "type": "function", "index": 0,
                  "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": [2]}"}}]},
               {"role": "tool", "tool_call_id": "call_1", "content": "3"}])"),
      R"([{"role":"user","content":"x"},{"role":"assistant","content":"","reasoning_content":"hm",)"
      R"("tool_calls":[{"id":"call_1","type":"function",)"
      R"("function":{"name":"f","arguments":{"z":1,"a":[2]}}}]},)"
      R"({"role":"tool","content":"3","tool_call_id":"call_1"}])");
}

TEST(ApiMessages, ArgumentsThatAreNoJsonStayText) {
  for (const char* arguments : {R"({\"a\": )", "[1]", R"({\"a\": 1, \"a\": 2})"}) {
    const std::string out = read(R"([{"role": "assistant", "tool_calls": [{"id": "c", "function":
                                   {"name": "f", "arguments": ")" +
                                 std::string(arguments) + R"("}}]}])");
    EXPECT_NE(out.find(std::string(R"("arguments":")") + arguments), std::string::npos) << out;
  }
}

TEST(ApiMessages, NamesWhatIsWrong) {
  EXPECT_EQ(api_error_of([] { parse_chat_request("{}", test_context()); }),
            "400 messages missing_required_parameter: messages: expected a list of at least one "
            "message, found nothing.");
  const std::pair<const char*, const char*> cases[] = {
      {"[]",
       "400 messages invalid_value: messages: expected a list of at least one message, found "
       "an empty list."},
      {R"(["a"])", "400 messages[0] -: messages[0]: expected an object, found \"a\"."},
      {R"([{"content": "a"}])",
       "400 messages[0].role missing_required_parameter: messages[0].role: expected one of "
       "\"system\", \"developer\", \"user\", \"assistant\", \"tool\", found nothing."},
      {R"([{"role": "function", "content": "a"}])",
       "400 messages[0].role invalid_value: messages[0].role: expected one of \"system\", "
       "\"developer\", \"user\", \"assistant\", \"tool\", found \"function\"."},
      {R"([{"role": "user"}])",
       "400 messages[0].content missing_required_parameter: messages[0].content: expected a text "
       "or a list of parts, found nothing."},
      {R"([{"role": "user", "content": 5}])",
       "400 messages[0].content invalid_value: messages[0].content: expected a text or a list of "
       "parts, found 5."},
      {R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])",
       "400 messages[0].content[0].type invalid_value: messages[0].content[0].type: expected "
       "\"text\", found \"image_url\"."},
      {R"([{"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]}])",
       "400 messages[0].content[0].x unknown_parameter: Unknown parameter: "
       "messages[0].content[0].x."},
      {R"([{"role": "user", "content": "a", "tool_calls": []}])",
       "400 messages[0].tool_calls unknown_parameter: Unknown parameter: messages[0].tool_calls."},
      {R"([{"role": "assistant"}])",
       "400 messages[0].content missing_required_parameter: messages[0].content: expected content "
       "or tool_calls, found nothing."},
      {R"([{"role": "tool", "content": "a"}])",
       "400 messages[0].tool_call_id missing_required_parameter: messages[0].tool_call_id: "
       "expected the id of a call, found nothing."},
      {R"([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}])",
       "400 messages[0].tool_calls[0].function.name missing_required_parameter: "
       "messages[0].tool_calls[0].function.name: expected a name, found nothing."},
      {R"([{"role": "assistant", "content": "a", "function_call": {}}])",
       "400 messages[0].function_call unsupported_parameter: messages[0].function_call is not "
       "supported: use tool_calls."},
  };
  for (const auto& [messages, error] : cases) EXPECT_EQ(error_of(messages), error);
}

}  // namespace
}  // namespace orthrus
