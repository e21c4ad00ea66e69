#include "server/api_form.h"

#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

/// What decides the form, as "PARAM GRAMMAR SCHEMA", or the error.
std::string form(const std::string& members) {
  std::string found;
  const std::string error = api_error_of([&] {
    const ChatRequest request = chat(members);
    found = request.form + "|" + request.options.grammar + "|" + request.options.json_schema;
  });
  return error == "no error" ? found : error;
}

TEST(ApiForm, EveryNameOfASchema) {
  const std::string schema = R"({"type":"integer"})";
  for (const char* members : {R"("response_format": {"type": "json_object", "schema": )",
                              R"("structured_outputs": {"json": )"}) {
    const std::string text = members + schema + "}";
    EXPECT_EQ(form(text), text.substr(1, text.find('"', 1) - 1) + "||" + schema);
  }
  EXPECT_EQ(form("\"guided_json\": " + schema), "guided_json||" + schema);
  // Its text, as some clients send it.
  EXPECT_EQ(form(R"("guided_json": "{ \"type\": \"integer\" }")"), "guided_json||" + schema);
  EXPECT_EQ(form(R"("structured_outputs": {"json_object": true})"),
            R"(structured_outputs||{"type":"object"})");
  EXPECT_EQ(form(R"("response_format": {"type": "json_object", "schema": null})"),
            R"(response_format||{"type":"object"})");
}

TEST(ApiForm, EveryNameOfAGrammar) {
  EXPECT_EQ(form(R"("grammar": "root ::= [a]")"), "grammar|root ::= [a]|");
  EXPECT_EQ(form(R"("guided_grammar": "root ::= [a]")"), "guided_grammar|root ::= [a]|");
  EXPECT_EQ(form(R"("structured_outputs": {"grammar": "root ::= [a]"})"),
            "structured_outputs|root ::= [a]|");
}

TEST(ApiForm, ChoicesAreLiterals) {
  EXPECT_EQ(form(R"("guided_choice": ["yes", "n\u00f6"])"),
            "guided_choice|root ::= \"yes\" | \"n\u00f6\"|");
  EXPECT_EQ(form(R"("structured_outputs": {"choice": ["a\"b\\\n\u007f]"]})"),
            R"(structured_outputs|root ::= "a\"b\\\x0a\x7f]"|)");
}

TEST(ApiForm, NoneAtAll) {
  EXPECT_EQ(form(""), "||");
  EXPECT_EQ(form(R"("response_format": {"type": "text"}, "grammar": "", "guided_json": null,
                     "guided_grammar": "", "structured_outputs": {}, "guided_choice": null)"),
            "||");
}

TEST(ApiForm, OneParameterDecides) {
  EXPECT_EQ(
      form(R"("guided_json": {}, "grammar": "root ::= [a]")"),
      "400 guided_json invalid_value: guided_json and grammar cannot both decide the answer's "
      "form.");
  EXPECT_EQ(form(R"("guided_choice": ["a"], "response_format": {"type": "json_object"})"),
            "400 guided_choice invalid_value: guided_choice and response_format cannot both decide "
            "the answer's form.");
  EXPECT_EQ(form(R"("guided_grammar": "root ::= [a]", "structured_outputs": {"json": {}})"),
            "400 structured_outputs invalid_value: structured_outputs and guided_grammar cannot "
            "both decide the answer's form.");
  EXPECT_EQ(form(R"("structured_outputs": {"json": {}, "choice": ["a"]})"),
            "400 structured_outputs invalid_value: structured_outputs.choice and "
            "structured_outputs.json cannot both decide the answer's form.");
}

TEST(ApiForm, NamesWhatIsWrong) {
  EXPECT_EQ(
      form(R"("guided_json": 3)"),
      "400 guided_json invalid_value: guided_json: expected a JSON schema, an object, found 3.");
  EXPECT_EQ(form(R"("guided_json": "{")"),
            "400 guided_json invalid_value: guided_json is not valid JSON (at byte 2).");
  EXPECT_EQ(form(R"("guided_json": "3")"),
            "400 guided_json invalid_value: guided_json: expected a JSON schema, an object, found "
            "\"3\".");
  EXPECT_EQ(form(R"("guided_choice": [])"),
            "400 guided_choice invalid_value: guided_choice: expected one text or more, found an "
            "empty list.");
  EXPECT_EQ(form(R"("guided_choice": ["a", ""])"),
            "400 guided_choice invalid_value: guided_choice[1]: expected a text that is not empty, "
            "found \"\".");
  EXPECT_EQ(
      form(R"("guided_regex": "a+")"),
      "400 guided_regex unsupported_parameter: guided_regex is not supported: use guided_json "
      "with a \"pattern\", or guided_grammar.");
  EXPECT_EQ(form(R"("structured_outputs": {"regex": "a+"})"),
            "400 structured_outputs.regex unsupported_parameter: structured_outputs.regex is not "
            "supported: use json with a \"pattern\", or grammar.");
  EXPECT_EQ(form(R"("structured_outputs": {"jsn": {}})"),
            "400 structured_outputs.jsn unknown_parameter: Unknown parameter: "
            "structured_outputs.jsn (the nearest is json).");
}

}  // namespace
}  // namespace orthrus
