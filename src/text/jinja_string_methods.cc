// The methods of strings that templates may call.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

template <Sides sides>
Value strip_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("strip()", arguments, {"chars"});
  return in.string(std::string(strip(self.string(), bound.optional_string(0), sides)));
}

Value strings(Interpreter& in, std::vector<std::string> parts) {
  std::vector<Value> items;
  for (std::string& part : parts) items.push_back(in.string(std::move(part)));
  return make_sequence(in.budget(), ObjectKind::kList, std::move(items));
}

template <bool from_right>
Value split_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("split()", arguments, {"sep", "maxsplit"});
  const auto separator = bound.optional_string(0);
  if (separator && separator->empty()) fail("split(): empty separator");
  const size_t most = separator ? count_of(self.string(), *separator) : self.string().size() / 2;
  in.budget().bytes(self.string().size() + most * sizeof(std::string));
  return strings(in, split(self.string(), separator, bound.integer(1, -1), from_right));
}

Value splitlines(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("splitlines()", arguments, {"keepends"});
  return strings(in, split_lines(self.string(), bound.truth(0, false)));
}

/// The part of `text` that the arguments start and end at `first` cut out, in characters.
std::string_view cut(std::string_view text, const Bound& bound, size_t first) {
  if (!bound.has(first)) return text;
  const auto all = characters(text);
  const int64_t size = static_cast<int64_t>(all.size());
  const auto place = [&](size_t index, int64_t otherwise) {
    if (!bound.has(index) || bound[index].is_none()) return otherwise;
    const int64_t at = bound.integer(index, 0);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t from = place(first, 0);
  const int64_t to = std::max(from, place(first + 1, size));
  const auto offset = [&](int64_t at) {
    return at == size ? text.size()
                      : static_cast<size_t>(all[static_cast<size_t>(at)].data() - text.data());
  };
  return text.substr(offset(from), offset(to) - offset(from));
}

template <bool at_start>
Value starts_or_ends(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound(at_start ? "startswith()" : "endswith()", arguments, {"prefix", "start", "end"},
                    1);
  const std::string_view text = cut(self.string(), bound, 1);
  const auto matches = [&](const Value& part) {
    if (!part.is_string()) fail("startswith() and endswith() take strings");
    return at_start ? text.starts_with(part.string()) : text.ends_with(part.string());
  };
  if (!bound[0].is(ObjectKind::kTuple)) return Value(matches(bound[0]));
  const auto parts = elements(in.budget(), bound[0]);
  return Value(std::any_of(parts.begin(), parts.end(), matches));
}

template <bool from_right, bool must_find>
Value find_method_of_string(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("find()", arguments, {"sub", "start", "end"}, 1);
  in.budget().bytes(self.string().size());
  const std::string_view text = cut(self.string(), bound, 1);
  const size_t at = from_right ? text.rfind(bound.string(0)) : text.find(bound.string(0));
  if (at == std::string_view::npos) {
    if (must_find) fail("index(): substring not found");
    return Value::integer(-1);
  }
  const auto skipped = static_cast<size_t>(text.data() - self.string().data()) + at;
  return Value::integer(static_cast<int64_t>(count_characters(self.string().substr(0, skipped))));
}

Value count_in_string(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("count()", arguments, {"sub", "start", "end"}, 1);
  in.budget().bytes(self.string().size());
  return Value::integer(
      static_cast<int64_t>(count_of(cut(self.string(), bound, 1), bound.string(0))));
}

Value replace_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("replace()", arguments, {"old", "new", "count"}, 2);
  const int64_t count = bound.integer(2, -1);
  in.budget().bytes(replaced_size(self.string(), bound.string(0), bound.string(1), count));
  return Value::string(replace(self.string(), bound.string(0), bound.string(1), count));
}

template <std::string (*change)(std::string_view)>
Value change_case(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  in.budget().bytes(self.string().size());
  return in.string(change(self.string()));
}

template <CharacterClass what>
Value is_all(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  in.budget().bytes(self.string().size());
  return Value(all_are(self.string(), what));
}

Value join_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("join()", arguments, {"iterable"}, 1);
  std::string whole;
  bool first = true;
  for (const Value& item : elements(in.budget(), bound[0])) {
    if (!item.is_string()) fail("join(): expected a string, found '{}'", item.type_name());
    in.budget().bytes(item.string().size() + self.string().size());
    if (!first) whole += self.string();
    first = false;
    whole += item.string();
  }
  return Value::string(std::move(whole));
}

Value format_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  return Value::string(brace_format(in, self.string(), arguments));
}

Value format_map(Interpreter& in, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("format_map() takes no keyword arguments");
  const Bound bound("format_map()", arguments, {"mapping"}, 1);
  if (!bound[0].is(ObjectKind::kDict)) fail("format_map(): expected a mapping");
  Arguments named;
  for (const auto& [key, value] : bound[0].as<Mapping>()->entries) {
    if (key.is_string()) named.named.emplace_back(key.string(), value);
  }
  return Value::string(brace_format(in, self.string(), named));
}

template <bool at_start>
Value remove_affix(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("removeprefix()", arguments, {"affix"}, 1);
  std::string_view text = self.string();
  const std::string& affix = bound.string(0);
  if (at_start && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!at_start && text.ends_with(affix)) text.remove_suffix(affix.size());
  return in.string(std::string(text));
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("partition()", arguments, {"sep"}, 1);
  const std::string& separator = bound.string(0);
  if (separator.empty()) fail("partition(): empty separator");
  const std::string& text = self.string();
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts;
  if (at != std::string::npos) {
    parts = {in.string(text.substr(0, at)), in.string(separator),
             in.string(text.substr(at + separator.size()))};
  } else if (from_right) {
    parts = {Value::string(""), Value::string(""), self};
  } else {
    parts = {self, Value::string(""), Value::string("")};
  }
  return make_sequence(in.budget(), ObjectKind::kTuple, std::move(parts));
}

/// -1: text at the left, 1: at the right, 0: in the middle, '0': zeros after the sign.
template <int where>
Value pad(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {"width", "fillchar"}, 1);
  const std::string fill(where == '0' ? "0" : bound.optional_string(1).value_or(" "));
  if (count_characters(fill) != 1) fail("a fill must be one character");
  const std::string& text = self.string();
  const int64_t size = static_cast<int64_t>(count_characters(text));
  const int64_t width = bound.integer(0, 0);
  const int64_t missing = width > size ? width - size : 0;
  if (static_cast<uint64_t>(missing) > Budget::kMaxBytes) fail("a string too large");
  in.budget().bytes(text.size() + static_cast<uint64_t>(missing) * fill.size());
  const int64_t left = where == -1 ? 0 : where == 0 ? missing / 2 + (missing & width & 1) : missing;
  std::string out;
  const bool is_signed = where == '0' && (text.starts_with('-') || text.starts_with('+'));
  if (is_signed) out += text[0];
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += is_signed ? text.substr(1) : text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return Value::string(std::move(out));
}

Value expandtabs(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("expandtabs()", arguments, {"tabsize"});
  const int64_t size = bound.integer(0, 8);
  if (size > static_cast<int64_t>(Budget::kMaxBytes)) fail("a string too large");
  std::string out;
  int64_t column = 0;
  for (std::string_view character : characters(self.string())) {
    if (character != "\t") {
      column = character == "\n" || character == "\r" ? 0 : column + 1;
      out += character;
    } else if (size > 0) {
      const int64_t spaces = size - column % size;
      in.budget().bytes(static_cast<uint64_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    }
  }
  return in.string(std::move(out));
}

template <bool (*holds)(std::string_view)>
Value holds_for(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  in.budget().bytes(self.string().size());
  return Value(holds(self.string()));
}

/// What replaces a character in str.translate(): the text of a character's number.
Value replacement(const Value& value) {
  if (value.is_none()) return Value::string("");
  if (value.is_string()) return value;
  const int64_t code_point = value.is_integer() ? to_int64(value) : -1;
  const bool valid =
      code_point >= 0 && code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
  if (!valid) fail("translate(): a character becomes a string, a code point or none");
  std::string text;
  append_utf8(text, static_cast<uint32_t>(code_point));
  return Value::string(std::move(text));
}

Value translate(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("translate()", arguments, {"table"}, 1);
  if (!bound[0].is(ObjectKind::kDict)) fail("translate(): expected a mapping");
  std::string out;
  for (std::string_view character : characters(self.string())) {
    const Value* to =
        find(in.budget(), *bound[0].as<Mapping>(), Value::integer(decode_character(character)));
    const std::string text = to != nullptr ? replacement(*to).string() : std::string(character);
    in.budget().bytes(text.size());
    out += text;
  }
  return Value::string(std::move(out));
}

Value maketrans(Interpreter& in, const Value&, const Arguments& arguments) {
  const Bound bound("maketrans()", arguments, {"x", "y", "z"}, 1);
  Entries entries;
  const auto code_point = [](const Value& character) {
    return Value::integer(decode_character(character.string()));
  };
  if (!bound.has(1)) {
    if (!bound[0].is(ObjectKind::kDict)) fail("maketrans(): expected a mapping or two strings");
    for (const auto& [key, value] : bound[0].as<Mapping>()->entries) {
      const bool is_character = key.is_string() && count_characters(key.string()) == 1;
      if (!is_character && !key.is_integer()) fail("maketrans(): a key is no single character");
      put(in.budget(), entries, is_character ? code_point(key) : key, value);
    }
    return make_dict(in.budget(), std::move(entries));
  }
  const auto from = elements(in.budget(), Value::string(bound.string(0)));
  const auto to = elements(in.budget(), Value::string(bound.string(1)));
  if (from.size() != to.size()) fail("maketrans(): the strings differ in length");
  for (size_t i = 0; i < from.size(); ++i) {
    put(in.budget(), entries, code_point(from[i]), code_point(to[i]));
  }
  if (bound.has(2)) {
    for (const Value& gone : elements(in.budget(), Value::string(bound.string(2)))) {
      put(in.budget(), entries, code_point(gone), Value());
    }
  }
  return make_dict(in.budget(), std::move(entries));
}

constexpr NamedMethod kStringMethods[] = {
    {"strip", strip_method<kBoth>},
    {"lstrip", strip_method<kLeft>},
    {"rstrip", strip_method<kRight>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", splitlines},
    {"startswith", starts_or_ends<true>},
    {"endswith", starts_or_ends<false>},
    {"find", find_method_of_string<false, false>},
    {"rfind", find_method_of_string<true, false>},
    {"index", find_method_of_string<false, true>},
    {"rindex", find_method_of_string<true, true>},
    {"count", count_in_string},
    {"replace", replace_method},
    {"upper", change_case<upper>},
    {"lower", change_case<lower>},
    {"casefold", change_case<lower>},
    {"title", change_case<title>},
    {"capitalize", change_case<capitalize>},
    {"swapcase", change_case<swap_case>},
    {"isalpha", is_all<CharacterClass::kAlpha>},
    {"isdigit", is_all<CharacterClass::kDigit>},
    {"isdecimal", is_all<CharacterClass::kDecimal>},
    {"isnumeric", is_all<CharacterClass::kNumeric>},
    {"isalnum", is_all<CharacterClass::kAlnum>},
    {"isspace", is_all<CharacterClass::kSpace>},
    {"islower", is_all<CharacterClass::kLower>},
    {"isupper", is_all<CharacterClass::kUpper>},
    {"join", join_method},
    {"format", format_method},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"ljust", pad<-1>},
    {"rjust", pad<1>},
    {"center", pad<0>},
    {"zfill", pad<'0'>},
    {"expandtabs", expandtabs},
    {"istitle", holds_for<is_title>},
    {"isascii", holds_for<is_ascii>},
    {"isprintable", holds_for<is_printable>},
    {"isidentifier", holds_for<is_identifier>},
    {"format_map", format_map},
    {"translate", translate},
    {"maketrans", maketrans},
};

}  // namespace

std::span<const NamedMethod> string_methods() { return kStringMethods; }

}  // namespace orthrus::jinja
