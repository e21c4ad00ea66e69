#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/jinja_value.h"

namespace orthrus::jinja {

/// Error(kInput) where it nests deeper than Budget::kMaxDepth.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; absent: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii = false;
  bool sort_keys = false;
};

/// Python's json.dumps.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace orthrus::jinja
