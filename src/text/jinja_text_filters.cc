// Filters on text.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_markup.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

template <std::string (*change)(std::string_view)>
Value change_case(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("the filter", arguments, {});
  return like(in.budget(), input, change(in.text(input)));
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

Value title_filter(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("title", arguments, {});
  return in.string(filter_title(in.text(input)));
}

Value trim(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const std::string text = in.text(input);
  return like(in.budget(), input, std::string(strip(text, bound.optional_string(0), kBoth)));
}

Value string(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("string", arguments, {});
  return input.is_string() ? input : in.string(in.text(input));
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
  return binary(in.budget(), "%", input.is_string() ? input : in.string(in.text(input)), values);
}

Value center(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  const Value text = like(in.budget(), input, in.text(input));
  const Value width = bound.has(0) ? bound[0] : Value::integer(80);
  return in.call(in.attribute(text, "center"), {{width}, {}});
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
      {"title", title_filter},
      {"trim", trim},
      {"string", string},
      {"replace", replace_filter},
      {"tojson", tojson},
      {"format", format},
      {"center", center},
      {"wordcount", wordcount},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
