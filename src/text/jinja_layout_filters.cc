// Filters that lay text out in lines.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_layout.h"
#include "text/jinja_markup.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

Value indent(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  if (!input.is_string()) fail("indent: expected a string, found '{}'", input.type_name());
  std::string by;
  if (bound.has(0) && bound[0].is_string()) {
    by = bound[0].string();
  } else {
    const int64_t width = std::max<int64_t>(0, bound.integer(0, 4));
    if (static_cast<uint64_t>(width) > Budget::kMaxBytes) fail("indent: too wide");
    in.budget().bytes(static_cast<uint64_t>(width));
    by.assign(static_cast<size_t>(width), ' ');
  }
  std::string out = bound.truth(1, false) ? by : "";
  bool first = true;
  for (const std::string& line : split_lines(input.string() + "\n", false)) {
    in.budget().bytes(line.size() + by.size() + 1);
    if (!first) {
      out += '\n';
      if (!line.empty() || bound.truth(2, false)) out += by;
    }
    first = false;
    out += line;
  }
  return like(in.budget(), input, std::move(out));
}

Value truncate(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const int64_t most = bound.integer(0, 255);
  const Value end = bound.has(2) ? bound[2] : Value::string("...");
  if (!end.is_string()) fail("truncate: the end must be a string");
  const int64_t leeway = bound.has(3) && bound[3].is_none() ? 5 : bound.integer(3, 5);
  const int64_t kept = most - static_cast<int64_t>(count_characters(end.string()));
  if (kept < 0 || leeway < 0) fail("truncate: length too small");
  if (length(input) - leeway <= most) return input;
  if (!input.is_string()) fail("truncate: expected a string, found '{}'", input.type_name());
  std::string text(
      input.string().substr(0, character_offset(input.string(), static_cast<size_t>(kept))));
  if (!bound.truth(1, false)) text = text.substr(0, text.rfind(' '));
  return binary(in.budget(), "+", like(in.budget(), input, std::move(text)), end);
}

Value wordwrap(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("wordwrap", arguments,
                    {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (!input.is_string()) fail("wordwrap: expected a string, found '{}'", input.type_name());
  const int64_t width = bound.integer(0, 79);
  const std::string by(bound.optional_string(2).value_or("\n"));
  const WrapStyle style{.width = width,
                        .break_long_words = bound.truth(1, true),
                        .break_on_hyphens = bound.truth(3, true)};
  in.budget().bytes(input.string().size() * sizeof(std::string));
  std::string out;
  bool first = true;
  for (const std::string& paragraph : split_lines(input.string(), false)) {
    if (!first) out += by;
    first = false;
    bool first_line = true;
    for (const std::string& line : wrapped(paragraph, style)) {
      in.budget().bytes(line.size() + by.size());
      if (!first_line) out += by;
      first_line = false;
      out += line;
    }
  }
  return in.string(std::move(out));
}

Value pprint(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("pprint", arguments, {});
  return in.string(pretty(in.budget(), input));
}

}  // namespace

Filter find_layout_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"indent", indent},
      {"truncate", truncate},
      {"wordwrap", wordwrap},
      {"pprint", pprint},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
