// Filters on text.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

template <std::string (*change)(std::string_view)>
Value change_case(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("the filter", arguments, {});
  return in.string(change(in.text(input)));
}

/// The filter title, unlike str.title(), begins words only after space and - ( { [ <.
std::string filter_title(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    out += capitalize(word);
    word.clear();
  };
  for (std::string_view character : characters(text)) {
    const bool cuts = is_space(decode_character(character)) ||
                      std::string_view("-({[<").find(character) != std::string_view::npos;
    if (cuts) flush();
    (cuts ? out : word) += character;
  }
  flush();
  return out;
}

Value trim(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const std::string text = in.text(input);
  return in.string(std::string(strip(text, bound.optional_string(0), kBoth)));
}

Value string(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("string", arguments, {});
  return input.is_string() ? input : in.string(in.text(input));
}

/// Marks text as safe from escaping, which is off here: text stays text.
Value safe(Interpreter& in, const Value& input, const Arguments& arguments) {
  return string(in, input, arguments);
}

Value escape(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("escape", arguments, {});
  std::string out;
  for (const char c : in.text(input)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '"') {
      out += "&#34;";
    } else {
      out += c;
    }
  }
  return in.string(std::move(out));
}

Value replace_filter(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::string text = in.text(input);
  const std::string from = in.text(bound[0]);
  const std::string to = in.text(bound[1]);
  const int64_t count = bound.has(2) && !bound[2].is_none() ? bound.integer(2, -1) : -1;
  in.budget().bytes(replaced_size(text, from, to, count));
  return Value::string(replace(text, from, to, count));
}

Value tojson(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.truth(0, false);
  style.sort_keys = bound.truth(3, false);
  if (bound.has(1) && !bound[1].is_none()) {
    if (bound[1].is_string()) {
      style.indent = bound[1].string();
    } else {
      const int64_t width = std::max<int64_t>(0, bound.integer(1, 0));
      if (width > 1000) fail("tojson: an indent over 1000");
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
    style.item_separator.assign(1, ',');
  }
  if (bound.has(2) && !bound[2].is_none()) {
    const auto pair = elements(in.budget(), bound[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      fail("tojson: separators must be two strings");
    }
    style.item_separator = pair[0].string();
    style.key_separator = pair[1].string();
  }
  return Value::string(to_json(in.budget(), input, style));
}

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
  return Value::string(std::move(out));
}

Value format(Interpreter& in, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    fail("format takes positional or named arguments, not both");
  }
  Value values;
  if (!arguments.named.empty()) {
    Entries entries;
    for (const auto& [name, value] : arguments.named) entries.emplace_back(in.string(name), value);
    values = make_dict(in.budget(), std::move(entries));
  } else {
    values = make_sequence(in.budget(), ObjectKind::kTuple, arguments.positional);
  }
  return Value::string(percent_format(in.budget(), in.text(input), values));
}

Value center(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  const Value text = in.string(in.text(input));
  const Value width = bound.has(0) ? bound[0] : Value::integer(80);
  return in.call(in.attribute(text, "center"), {{width}, {}});
}

Value truncate(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!input.is_string()) fail("truncate: expected a string, found '{}'", input.type_name());
  const int64_t most = bound.integer(0, 255);
  const std::string end = bound.has(2) ? bound.string(2) : "...";
  const int64_t leeway = bound.integer(3, 5);
  const int64_t kept = most - static_cast<int64_t>(count_characters(end));
  if (kept < 0 || leeway < 0) fail("truncate: length too small");
  in.budget().bytes(input.string().size() * sizeof(std::string_view));
  const auto all = characters(input.string());
  if (static_cast<int64_t>(all.size()) - leeway <= most) return input;
  std::string text = input.string().substr(
      0, static_cast<size_t>(all[static_cast<size_t>(kept)].data() - input.string().data()));
  if (!bound.truth(1, false)) text = text.substr(0, text.rfind(' '));
  return in.string(text + end);
}

Value wordcount(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("wordcount", arguments, {});
  std::string text = in.text(input);
  size_t words = 0;
  bool in_word = false;
  for (std::string_view character : characters(text)) {
    const int32_t c = decode_character(character);
    const bool word = c == '_' || all_are(character, CharacterClass::kAlnum);
    words += word && !in_word;
    in_word = word;
  }
  return Value::integer(static_cast<int64_t>(words));
}

}  // namespace

Filter find_text_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"upper", change_case<upper>},
      {"lower", change_case<lower>},
      {"capitalize", change_case<capitalize>},
      {"title", change_case<filter_title>},
      {"trim", trim},
      {"string", string},
      {"safe", safe},
      {"escape", escape},
      {"e", escape},
      {"replace", replace_filter},
      {"tojson", tojson},
      {"indent", indent},
      {"format", format},
      {"center", center},
      {"truncate", truncate},
      {"wordcount", wordcount},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
