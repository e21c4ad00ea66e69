#include "server/api_tools.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/grammar.h"
#include "server/api_prompt.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxTools = 128;
constexpr size_t kMaxToolName = 64;
constexpr size_t kMaxDescription = 64 * 1024;

// What the schemas of a request's functions may take together, well within a grammar's bounds.
struct SchemaBudget {
  size_t bytes = 512 * 1024;
  uint64_t states = 128 * 1024;

  bool take(const Json& schema, uint64_t schema_states) {
    const size_t schema_bytes = dump_json_line(schema).size();
    if (schema_bytes > bytes || schema_states > states) return false;
    bytes -= schema_bytes;
    states -= schema_states;
    return true;
  }
};

// A function as it came.
struct ReadFunction {
  std::string name;
  std::string path;                  // of its parameters
  const Json* parameters = nullptr;  // null: none
  bool strict = false;
};

// Names stand in grammars and in the model's JSON: nothing that would need an escape.
std::string read_name(ObjectReader& function) {
  const std::string name = function.string("name", kMaxToolName);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  if (name.empty() || !plain) function.fail("name", "1 to 64 letters, digits, _, - or .");
  return name;
}

ReadFunction read_tool(const Json& tool, size_t index) {
  ObjectReader reader(tool, fmt::format("tools[{}]", index));
  if (!reader.has("type")) reader.fail("type", "\"function\"");
  reader.choice("type", {"function"}, 0);
  const Json* member = reader.object("function");
  if (!member) reader.fail("function", "an object");
  reader.finish();
  ObjectReader function(*member, reader.path_of("function"));
  ReadFunction read;
  read.name = read_name(function);
  read.path = function.path_of("parameters");
  function.string("description", kMaxDescription);
  read.parameters = function.object("parameters");
  read.strict = function.boolean("strict", false);
  function.finish();
  return read;
}

// As OpenAI: a function without parameters takes none.
Json strict_schema(const ReadFunction& function, SchemaBudget& budget) {
  if (!function.parameters) {
    return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  }
  const auto refused = [&](const std::string& message) {
    return bad_request(message, function.path, "invalid_function_parameters");
  };
  const Json& schema = *function.parameters;
  if (!schema.contains("type") || schema["type"] != "object") {
    throw refused(fmt::format(
        "{}: the schema of a strict function must be of \"type\": \"object\".", function.path));
  }
  uint64_t states = 0;
  try {
    states = check_json_schema(schema, function.path);
  } catch (const Error& error) {
    throw refused(std::string(error.what()) + ".");
  }
  if (!budget.take(schema, states)) {
    throw refused(function.path + ": the schemas of the functions are too large together.");
  }
  return schema;
}

// What of it can be enforced is, else any object is right.
Json lenient_schema(const ReadFunction& function, SchemaBudget& budget) {
  const Json any = {{"type", "object"}};
  if (!function.parameters) return any;
  const Json& schema = *function.parameters;
  if (!schema.contains("type") || schema["type"] != "object") return any;
  try {
    const uint64_t states = check_json_schema(schema, function.path);
    return budget.take(schema, states) ? schema : any;
  } catch (const Error&) {
    return any;
  }
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

// Strict functions first: others make do with what they leave.
void add_functions(const std::vector<ReadFunction>& functions, const std::string& named,
                   ToolPlan& plan) {
  SchemaBudget budget;
  for (const ReadFunction& function : functions) {
    Json schema = function.strict ? strict_schema(function, budget) : Json();
    if (!named.empty() && function.name != named) continue;
    plan.strict |= function.strict;
    plan.functions.push_back({function.name, std::move(schema)});
  }
  if (!plan.has_grammar()) return;
  size_t next = 0;
  for (const ReadFunction& function : functions) {
    if (!named.empty() && function.name != named) continue;
    ToolFunction& planned = plan.functions[next++];
    if (!function.strict) planned.schema = lenient_schema(function, budget);
  }
}

// Rules of the texts in which behind each `tag` stands `body`, an expression. The first character
// of the tag is at none of its other places, and none has a meaning in a class.
std::string text_with(std::string_view tag, const std::string& body) {
  // `after`: what may follow a beginning of the tag, but for the tag's own beginning again; `part`:
  // a beginning of it, cut short.
  std::string after = body, part;
  for (size_t i = tag.size(); i-- > 1;) {
    after = fmt::format("([^{0}{1}] | \"{1}\" {2})", tag[0], tag[i], after);
    if (i + 1 < tag.size()) part = fmt::format("(\"{}\" {})?", tag[i], part);
  }
  return fmt::format("root ::= ([^{0}] | part* \"{0}\" {1})* part*\npart ::= \"{0}\" {2}\n", tag[0],
                     after, part);
}

}  // namespace

ToolPlan read_tools(ObjectReader& body) {
  ToolPlan plan;
  std::vector<ReadFunction> functions;
  const auto known = [&](const std::string& name) {
    return std::any_of(functions.begin(), functions.end(),
                       [&](const ReadFunction& function) { return function.name == name; });
  };
  if (const Json* tools = body.array("tools", kMaxTools)) {
    for (size_t i = 0; i < tools->size(); ++i) {
      ReadFunction function = read_tool((*tools)[i], i);
      if (known(function.name)) {
        throw bad_request(
            fmt::format("tools[{}]: there are two functions \"{}\".", i, function.name), "tools",
            "invalid_value");
      }
      functions.push_back(std::move(function));
    }
    plan.tools = *tools;
  }
  plan.choice = functions.empty() ? ToolPlan::Choice::kNone : ToolPlan::Choice::kAuto;
  plan.parallel = body.boolean("parallel_tool_calls", true);
  const std::string named = read_choice(body, plan);
  if (plan.choice == ToolPlan::Choice::kRequired &&
      (functions.empty() || !(named.empty() || known(named)))) {
    throw bad_request(
        named.empty()
            ? std::string("tool_choice requires a call, but there are no tools.")
            : fmt::format("tool_choice names \"{}\", which is not among the tools.", named),
        "tool_choice", "invalid_value");
  }
  if (functions.empty()) plan.choice = ToolPlan::Choice::kNone;
  if (!named.empty()) plan.parallel = false;  // as OpenAI: a named function is called once
  add_functions(functions, named, plan);
  return plan;
}

std::string tool_call_grammar(const ToolPlan& plan) {
  const std::string line = R"("\n")";
  std::string names, rules;
  for (size_t i = 0; i < plan.functions.size(); ++i) {
    const ToolFunction& function = plan.functions[i];
    names += fmt::format("{}function-{}", i == 0 ? "" : " | ", i);
    rules += fmt::format("function-{} ::= \"{}\\\", \\\"arguments\\\": \" %json {}\n", i,
                         function.name, dump_json_line(function.schema));
  }
  const std::string call = fmt::format(R"("\n{{\"name\": \"" ({}) "}}\n{}")", names, kToolCallEnd);
  if (plan.choice == ToolPlan::Choice::kAuto) return text_with(kToolCallBegin, call) + rules;
  // A thought may stand before it, which two line ends follow.
  return fmt::format("root ::= (\"\\n\" \"\\n\"?)? call{}\ncall ::= \"{}\" {}\n{}",
                     plan.parallel ? " (\"\\n\" call)*" : "", kToolCallBegin, call, rules);
}

}  // namespace orthrus
