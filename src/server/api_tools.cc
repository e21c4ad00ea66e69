#include "server/api_tools.h"

#include <fmt/format.h>

#include <algorithm>

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxToolName = 64;
constexpr size_t kMaxDescription = 64 * 1024;

// Names stand in grammars and in the model's JSON: nothing that would need an escape.
std::string read_name(ObjectReader& function) {
  const std::string name = function.string("name", kMaxToolName);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  if (name.empty() || !plain) function.fail("name", "1 to 64 letters, digits, _, - or .");
  return name;
}

std::string read_tool(const Json& tool, size_t index) {
  ObjectReader reader(tool, fmt::format("tools[{}]", index));
  if (!reader.has("type")) reader.fail("type", "\"function\"");
  reader.choice("type", {"function"}, 0);
  const Json* member = reader.object("function");
  if (!member) reader.fail("function", "an object");
  reader.finish();
  ObjectReader function(*member, reader.path_of("function"));
  const std::string name = read_name(function);
  function.string("description", kMaxDescription);
  function.object("parameters");
  if (function.boolean("strict", false)) {
    function.refuse("strict", "arguments are a JSON object, but are not held to the schema");
  }
  function.finish();
  return name;
}

// The function that tool_choice names; "" for a choice by word.
std::string read_choice(ObjectReader& body, ToolPlan& plan) {
  const Json* choice = body.find("tool_choice");
  if (!choice) return {};
  if (choice->is_object()) {
    ObjectReader reader(*choice, "tool_choice");
    if (!reader.has("type")) reader.fail("type", "\"function\"");
    reader.choice("type", {"function"}, 0);
    const Json* member = reader.object("function");
    if (!member) reader.fail("function", "an object");
    reader.finish();
    ObjectReader function(*member, "tool_choice.function");
    const std::string name = read_name(function);
    function.finish();
    plan.choice = ToolPlan::Choice::kRequired;
    return name;
  }
  static constexpr std::array kChoices = {ToolPlan::Choice::kNone, ToolPlan::Choice::kAuto,
                                          ToolPlan::Choice::kRequired};
  const int word = body.choice("tool_choice", {"none", "auto", "required"}, 0);
  plan.choice = kChoices[static_cast<size_t>(word)];
  return {};
}

}  // namespace

ToolPlan read_tools(ObjectReader& body) {
  ToolPlan plan;
  if (const Json* tools = body.array("tools", kMaxTools)) {
    for (size_t i = 0; i < tools->size(); ++i) {
      const std::string name = read_tool((*tools)[i], i);
      if (std::find(plan.names.begin(), plan.names.end(), name) != plan.names.end()) {
        throw bad_request(fmt::format("tools[{}]: there are two functions \"{}\".", i, name),
                          "tools", "invalid_value");
      }
      plan.names.push_back(name);
    }
    plan.tools = *tools;
  }
  plan.choice = plan.names.empty() ? ToolPlan::Choice::kNone : ToolPlan::Choice::kAuto;
  plan.parallel = body.boolean("parallel_tool_calls", true);
  const std::string named = read_choice(body, plan);
  const bool known = std::find(plan.names.begin(), plan.names.end(), named) != plan.names.end();
  if (plan.choice == ToolPlan::Choice::kRequired &&
      (plan.names.empty() || !(named.empty() || known))) {
    throw bad_request(
        named.empty()
            ? std::string("tool_choice requires a call, but there are no tools.")
            : fmt::format("tool_choice names \"{}\", which is not among the tools.", named),
        "tool_choice", "invalid_value");
  }
  if (plan.names.empty()) plan.choice = ToolPlan::Choice::kNone;
  if (!named.empty()) {
    plan.names = {named};
    plan.parallel = false;  // as OpenAI: a named function is called once
  }
  return plan;
}

std::string tool_call_grammar(const std::vector<std::string>& names, bool parallel) {
  std::string functions;
  for (const std::string& name : names) {
    functions += fmt::format("{}\"{}\"", functions.empty() ? "" : " | ", name);
  }
  // A thought may stand before it, which two line ends follow.
  return fmt::format(
      "root ::= (\"\\n\" \"\\n\"?)? call{}\n"
      "call ::= \"<tool_call>\\n{{\\\"name\\\": \\\"\" ({}) \"\\\", \\\"arguments\\\": \" object "
      "\"}}\\n</tool_call>\"\n{}",
      parallel ? " (\"\\n\" call)*" : "", functions, kJsonRules);
}

const char* const kJsonRules = R"(object ::= "{" ws (member ("," ws member)*)? "}"
member ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]"
value ::= (object | array | string | number | "true" | "false" | "null") ws
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" hex hex hex hex))* "\""
hex ::= [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= (" " | "\n" [ \t]{0,16})?
)";

}  // namespace orthrus
