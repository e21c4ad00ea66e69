#include "server/api_tools.h"

#include <gtest/gtest.h>

#include "server/api_prompt.h"
#include "server/api_test_support.h"

namespace orthrus {
namespace {

const std::string kTools =
    R"("tools": [{"type": "function", "function": {"name": "add", "description": "d",
        "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}},
        {"type": "function", "function": {"name": "now"}}])";

TEST(ApiTools, ReachTheTemplateAsTheyCame) {
  const ChatRequest request = chat(kTools);
  EXPECT_TRUE(request.tools);
  EXPECT_EQ(request.context["tools"].dump(),
            R"([{"type":"function","function":{"name":"add","description":"d",)"
            R"("parameters":{"type":"object","properties":{"z":{},"a":{}}}}},)"
            R"({"type":"function","function":{"name":"now"}}])");
  EXPECT_EQ(request.options.grammar, "");
  EXPECT_TRUE(request.options.stop.empty());
}

TEST(ApiTools, NoneLeavesThemOut) {
  const ChatRequest request = chat(kTools + R"(, "tool_choice": "none")");
  EXPECT_FALSE(request.tools);
  EXPECT_FALSE(request.context.contains("tools"));
  EXPECT_FALSE(chat(R"("tools": [], "tool_choice": "auto")").tools);
}

TEST(ApiTools, RequiredCallsAreAGrammar) {
  EXPECT_EQ(chat(kTools + R"(, "tool_choice": "required")").options.grammar,
            R"g(root ::= ("\n" "\n"?)? call ("\n" call)*
call ::= "<tool_call>" "\n{\"name\": \"" (function-0 | function-1) "}\n</tool_call>"
function-0 ::= "add\", \"arguments\": " %json {"type":"object","properties":{"z":{},"a":{}}}
function-1 ::= "now\", \"arguments\": " %json {"type":"object"}
)g");
  EXPECT_EQ(chat(kTools + R"(, "tool_choice": {"type": "function", "function": {"name": "now"}})")
                .options.grammar,
            R"g(root ::= ("\n" "\n"?)? call
call ::= "<tool_call>" "\n{\"name\": \"" (function-0) "}\n</tool_call>"
function-0 ::= "now\", \"arguments\": " %json {"type":"object"}
)g");
}

TEST(ApiTools, OneCallOnlyStopsBehindIt) {
  EXPECT_EQ(chat(kTools + R"(, "parallel_tool_calls": false)").options.stop,
            std::vector<std::string>{kToolCallEnd});
}

TEST(ApiTools, NamesWhatIsWrong) {
  const auto error = [](const std::string& members) {
    return api_error_of([&] { chat(members); });
  };
  const auto tool_error = [&](const std::string& function) {
    return error(R"("tools": [{"type": "function", "function": )" + function + "}]");
  };
  EXPECT_EQ(error(R"("tools": [{"function": {"name": "f"}}])"),
            "400 tools[0].type missing_required_parameter: tools[0].type: expected \"function\", "
            "found nothing.");
  EXPECT_EQ(error(R"("tools": [{"type": "web_search"}])"),
            "400 tools[0].type invalid_value: tools[0].type: expected \"function\", found "
            "\"web_search\".");
  EXPECT_EQ(tool_error(R"({"name": "a b"})"),
            "400 tools[0].function.name invalid_value: tools[0].function.name: expected 1 to 64 "
            "letters, digits, _, - or ., found \"a b\".");
  EXPECT_EQ(tool_error(R"({"name": "f", "strict": 1})"),
            "400 tools[0].function.strict invalid_value: tools[0].function.strict: expected true "
            "or false, found 1.");
  EXPECT_EQ(error(R"("tools": [{"type": "function", "function": {"name": "f"}},
                               {"type": "function", "function": {"name": "f"}}])"),
            "400 tools invalid_value: tools[1]: there are two functions \"f\".");
  EXPECT_EQ(error(R"("tool_choice": "required")"),
            "400 tool_choice invalid_value: tool_choice requires a call, but there are no tools.");
  EXPECT_EQ(error(kTools + R"(, "tool_choice": {"type": "function", "function": {"name": "x"}})"),
            "400 tool_choice invalid_value: tool_choice names \"x\", which is not among the "
            "tools.");
  EXPECT_EQ(error(kTools + R"(, "tool_choice": "any")"),
            "400 tool_choice invalid_value: tool_choice: expected one of \"none\", \"auto\", "
            "\"required\", found \"any\".");
  EXPECT_EQ(error(kTools + R"(, "response_format": {"type": "json_object"})").substr(0, 26),
            "400 tools invalid_value: t");
}

}  // namespace
}  // namespace orthrus
