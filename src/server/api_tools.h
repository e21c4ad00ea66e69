#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/api_json.h"

namespace orthrus {

/// A function that may be called.
struct ToolFunction {
  std::string name;
  /// What its arguments are held to where a grammar is: a JSON schema of objects.
  nlohmann::ordered_json schema;
};

/// What "tools", "tool_choice" and "parallel_tool_calls" ask for.
struct ToolPlan {
  enum class Choice { kNone, kAuto, kRequired };
  Choice choice = Choice::kNone;
  nlohmann::ordered_json tools;         ///< for the chat template: as they came
  std::vector<ToolFunction> functions;  ///< that may be called
  bool parallel = true;                 ///< more than one call in an answer
  bool strict = false;                  ///< one of the functions is: calls are held to schemas

  bool has_grammar() const {
    return choice == Choice::kRequired || (choice == Choice::kAuto && strict);
  }
};

/// ApiError where they are malformed, a strict function's schema cannot be enforced, or a call is
/// required and there are no tools.
ToolPlan read_tools(ObjectReader& body);

/// A grammar (GBNF) of the answers that a plan allows: calls of its functions in the form of Qwen's
/// and Hermes's templates. For Choice::kRequired nothing else; for kAuto any text, in which
/// <tool_call> begins a call.
std::string tool_call_grammar(const ToolPlan& plan);

}  // namespace orthrus
