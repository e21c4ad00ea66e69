#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace orthrus::jinja {

struct WrapStyle {
  int64_t width = 79;  // characters of a line
  bool break_long_words = true;
  bool break_on_hyphens = true;
};
/// The lines of one paragraph as Python's textwrap breaks it: none where it is empty. Error(kInput)
/// for a width below 1.
std::vector<std::string> wrapped(std::string_view paragraph, const WrapStyle& style);

/// Python's pprint.pformat(): repr() with sorted keys, over several lines where it is wider than 80
/// characters.
std::string pretty(Budget& budget, const Value& value);

}  // namespace orthrus::jinja
