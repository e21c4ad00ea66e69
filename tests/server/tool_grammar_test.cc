// Which answers the grammars of tool calls allow, and what they cost those without calls.
#include <gtest/gtest.h>

#include "engine/test_models.h"
#include "grammar/grammar_test_support.h"
#include "server/api_test_support.h"
#include "server/api_tools.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

/// As openai.pydantic_function_tool writes a function.
const std::string kForecast = R"({"type": "function", "function": {"name": "Forecast",
  "strict": true, "parameters": {"$defs": {"Place": {"properties": {"city": {"title": "City",
  "type": "string"}, "country": {"anyOf": [{"type": "string"}, {"type": "null"}],
  "title": "Country"}}, "required": ["city", "country"], "title": "Place", "type": "object",
  "additionalProperties": false}, "Unit": {"enum": ["metric", "imperial"], "title": "Unit",
  "type": "string"}}, "description": "Weather of places.", "properties": {"places":
  {"items": {"$ref": "#/$defs/Place"}, "title": "Places", "type": "array"}, "unit":
  {"$ref": "#/$defs/Unit"}, "days": {"maximum": 7, "minimum": 1, "title": "Days",
  "type": "integer"}}, "required": ["places", "unit", "days"], "title": "Forecast",
  "type": "object", "additionalProperties": false}, "description": "Weather of places."}})";
const std::string kTree = R"({"type": "function", "function": {"name": "tree", "strict": true,
  "parameters": {"type": "object", "properties": {"name": {"type": "string"}, "children":
  {"type": "array", "items": {"$ref": "#"}}}, "required": ["name", "children"],
  "additionalProperties": false}}})";
const std::string kNow = R"({"type": "function", "function": {"name": "now", "strict": true}})";

std::string function(const std::string& name, const std::string& parameters, bool strict) {
  return R"({"type": "function", "function": {"name": ")" + name + R"(", "parameters": )" +
         parameters + (strict ? R"(, "strict": true}})" : "}}");
}

GenerateOptions options_of(const std::string& tools, const std::string& choice = "auto") {
  return chat("\"tools\": [" + tools + "], \"tool_choice\": \"" + choice + "\"").options;
}

std::string call(const std::string& name, const std::string& arguments) {
  return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
         "}\n</tool_call>";
}

TEST(ToolGrammar, HoldsRequiredCallsToTheirSchemas) {
  const auto grammar =
      parse_gbnf(options_of(kForecast + ", " + kTree + ", " + kNow, "required").grammar);
  const std::string place = R"({"places": [{"city": "Rome", "country": null}], )";
  EXPECT_TRUE(matches(grammar, call("Forecast", place + R"("unit": "metric", "days": 7})")));
  EXPECT_FALSE(matches(grammar, call("Forecast", place + R"("unit": "metric", "days": 8})")));
  EXPECT_FALSE(matches(grammar, call("Forecast", place + R"("unit": "kelvin", "days": 7})")));
  EXPECT_FALSE(matches(grammar, call("Forecast", R"({"places": []})")));
  EXPECT_TRUE(matches(
      grammar, call("tree", R"({"name": "a", "children": [{"name": "b", "children": []}]})")));
  EXPECT_FALSE(matches(grammar, call("tree", R"({"name": "a", "children": [1]})")));
  EXPECT_TRUE(matches(grammar, call("now", "{}") + "\n" + call("now", "{}")));
  EXPECT_FALSE(matches(grammar, call("now", R"({"a": 1})")));
  EXPECT_FALSE(matches(grammar, call("Tree", "{}")));
  EXPECT_FALSE(matches(grammar, "Text. " + call("now", "{}")));
}

TEST(ToolGrammar, WithoutStrictWhatCanBeEnforcedIs) {
  const auto grammar = parse_gbnf(
      options_of(
          function("known", R"({"type": "object", "properties": {"a": {"type": "null"}}})", false) +
              ", " +
              function("unknown", R"({"type": "object", "not": {"required": ["a"]}})", false) +
              ", " + function("any", R"({"anyOf": [{"type": "string"}]})", false),
          "required")
          .grammar);
  EXPECT_TRUE(matches(grammar, call("known", R"({"a": null})")));
  EXPECT_TRUE(matches(grammar, call("known", "{}")));
  EXPECT_FALSE(matches(grammar, call("known", R"({"a": 1})")));
  for (const char* name : {"unknown", "any"}) {
    EXPECT_TRUE(matches(grammar, call(name, R"({"a": [1, {}]})"))) << name;
    EXPECT_FALSE(matches(grammar, call(name, "\"a\""))) << name;
  }
}

TEST(ToolGrammar, ForAutoIsTextInWhichTheTagBeginsACall) {
  const GenerateOptions options = options_of(kTree + ", " + kNow);
  const auto grammar = parse_gbnf(options.grammar);
  for (const char* text :
       {"", "Hello, wörld \U0001F600\n\n", "a < b << c <tool", "<tool_call", "<<tool_cal<tool_call",
        "<tool_calls> <tool_call >", "</tool_call>", "<to<tool_<tool", "<think>x</think>"}) {
    EXPECT_TRUE(matches(grammar, text)) << text;
    const std::string around = text;
    EXPECT_TRUE(matches(grammar, around + call("now", "{}") + around)) << text;
    EXPECT_FALSE(matches(grammar, around + call("now", R"({"a": 1})") + around)) << text;
    EXPECT_FALSE(matches(grammar, around + "<tool_call>" + around)) << text;
  }
  EXPECT_TRUE(matches(
      grammar, call("now", "{}") + call("tree", R"({"name": "", "children": []})") + " Done."));
  // No call is held to anything where nothing is strict.
  EXPECT_EQ(options_of(function("f", R"({"type": "object"})", false)).grammar, "");
  EXPECT_EQ(options_of(kNow, "none").grammar, "");
}

TEST(ToolGrammar, NamesWhatOfAStrictSchemaCannotBeEnforced) {
  const auto error = [](const std::string& parameters, const std::string& choice = "auto") {
    return api_error_of([&] { options_of(kNow + ", " + function("f", parameters, true), choice); });
  };
  const std::string begin =
      "400 tools[1].function.parameters invalid_function_parameters: "
      "tools[1].function.parameters: ";
  const std::string unsupported =
      R"({"type": "object", "properties": {"a": {"not": {"type": "null"}}}})";
  for (const char* choice : {"none", "auto", "required"}) {
    EXPECT_EQ(error(unsupported, choice),
              begin + "#/properties/a: keyword \"not\" is not supported.");
  }
  EXPECT_EQ(
      error(R"s({"type": "object", "properties": {"a": {"pattern": "(?=a)"}}})s"),
      begin + "#/properties/a/pattern: line 1, column 3: lookaround and flags are not supported.");
  for (const char* parameters :
       {"{}", R"({"anyOf": [{"type": "object"}]})", R"({"type": ["object", "null"]})"}) {
    EXPECT_EQ(error(parameters),
              begin + "the schema of a strict function must be of \"type\": \"object\".");
  }
}

TEST(ToolGrammar, LargeSchemasFitTogetherOrAreRefused) {
  const std::string large = R"({"type": "object", "properties": {"a": {"type": "array",
      "maxItems": 7, "items": {"type": "string", "minLength": 1000, "maxLength": 1900}}}})";
  std::string tools = kNow;
  for (int i = 0; i < 40; ++i) tools += ", " + function("f" + std::to_string(i), large, false);
  const std::string grammar = options_of(tools).grammar;
  EXPECT_NE(
      grammar.find(
          "\nfunction-1 ::= \"f0\\\", \\\"arguments\\\": \" %json {\"type\":\"object\",\"prop"),
      std::string::npos);
  EXPECT_NE(grammar.find(
                "\nfunction-40 ::= \"f39\\\", \\\"arguments\\\": \" %json {\"type\":\"object\"}\n"),
            std::string::npos);
  std::string strict_tools = function("f", large, true);
  for (int i = 0; i < 40; ++i)
    strict_tools += ", " + function("f" + std::to_string(i), large, true);
  const std::string error = api_error_of([&] { options_of(strict_tools); });
  EXPECT_NE(
      error.find(".function.parameters: the schemas of the functions are too large together."),
      std::string::npos)
      << error;
}

class ToolAnswers : public testing::Test {
 protected:
  Generator generator_{ar_options()};

  static LoadOptions ar_options() {
    LoadOptions options = demo_options(WeightFormat::kAuto);
    options.adapter.clear();
    return options;
  }
  GenerateResult answer(const std::string& text, GenerateOptions options, int64_t tokens) {
    options.max_new_tokens = tokens;
    options.sampling.seed = 5;
    return generator_.generate(
        generator_.loaded().tokenizer.encode("<|im_start|>user\n" + text +
                                             "<|im_end|>\n<|im_start|>assistant\n"),
        options, nullptr, nullptr, {});
  }
};

TEST_F(ToolAnswers, WithoutACallAreWhatTheyAreWithoutTheGrammar) {
  for (const double temperature : {0.0, 0.8}) {
    GenerateOptions options;
    options.sampling.temperature = temperature;
    const char* text = "Write a line of HTML, like <b>bold</b>.";
    const GenerateResult plain = answer(text, options, 24);
    EXPECT_NE(plain.text.find('<'), std::string::npos);
    EXPECT_EQ(plain.text.find("<tool_call>"), std::string::npos);
    options.grammar = options_of(kForecast).grammar;
    EXPECT_EQ(answer(text, options, 24).token_ids, plain.token_ids) << plain.text;
  }
}

TEST_F(ToolAnswers, AreCallsWhereTheyHaveToBe) {
  const std::string tool = function("days", R"({"type": "object", "properties": {"unit": {"enum":
      ["metric", "imperial"]}, "days": {"type": "integer", "minimum": 3, "maximum": 5}},
      "required": ["unit", "days"], "additionalProperties": false})",
                                    true);
  GenerateOptions options = options_of(tool, "required");
  options.sampling.temperature = 0;
  const GenerateResult result = answer("What will the weather be in Rome?", options, 100);
  const size_t open = result.text.find('{'), close = result.text.find("\n</tool_call>");
  ASSERT_NE(close, std::string::npos) << result.text;
  const Json made = Json::parse(result.text.substr(open, close - open));
  EXPECT_EQ(made["name"], "days");
  EXPECT_TRUE(made["arguments"]["unit"] == "metric" || made["arguments"]["unit"] == "imperial");
  EXPECT_GE(made["arguments"]["days"], 3);
  EXPECT_LE(made["arguments"]["days"], 5);
}

}  // namespace
}  // namespace orthrus
