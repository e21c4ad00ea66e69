#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/api_json.h"

namespace orthrus {

/// What "tools", "tool_choice" and "parallel_tool_calls" ask for.
struct ToolPlan {
  enum class Choice { kNone, kAuto, kRequired };
  Choice choice = Choice::kNone;
  nlohmann::ordered_json tools;    ///< for the chat template: as they came
  std::vector<std::string> names;  ///< that may be called
  bool parallel = true;            ///< more than one call in an answer
};

/// ApiError where they are malformed, or a call is required and there are no tools.
ToolPlan read_tools(ObjectReader& body);

/// For Choice::kRequired: a grammar (GBNF) of answers that are calls of these functions in the
/// form of Qwen's and Hermes's templates. Arguments are any JSON object.
std::string tool_call_grammar(const std::vector<std::string>& names, bool parallel);

/// Rules `object`, `value`, `string`, `number` and `ws` (bounded) of JSON in GBNF.
extern const char* const kJsonRules;

}  // namespace orthrus
