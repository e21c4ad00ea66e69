// The methods of strings, lists, tuples and dicts that templates may call.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

using Method = Value (*)(Interpreter&, const Value& self, const Arguments&);
struct NamedMethod {
  std::string_view name;
  Method method;
};

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
  // At worst each byte becomes a part.
  in.budget().bytes(self.string().size());
  in.budget().step(self.string().size() / 2);
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

Value get_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("get() takes no keyword arguments");
  const Bound bound("get()", arguments, {"key", "default"}, 1);
  const Value* value = find(in.budget(), *self.as<Mapping>(), bound[0]);
  return value != nullptr ? *value : bound.has(1) ? bound[1] : Value();
}

template <ObjectKind kind>
Value view(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.as<Mapping>()->entries) {
    items.push_back(kind == ObjectKind::kKeys ? key
                    : kind == ObjectKind::kValues
                        ? value
                        : make_sequence(in.budget(), ObjectKind::kTuple, {key, value}));
  }
  return make_sequence(in.budget(), kind, std::move(items));
}

Value copy(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound bound("copy()", arguments, {});
  return self;  // what cannot change needs no second one
}

Value count_in_list(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("count()", arguments, {"value"}, 1);
  const auto items = elements(in.budget(), self);
  return Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(in.budget(), item, bound[0]);
  }));
}

Value index_in_list(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("index()", arguments, {"value"}, 1);
  const auto items = elements(in.budget(), self);
  const auto at = std::find_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(in.budget(), item, bound[0]);
  });
  if (at == items.end()) fail("index(): the list has no such item");
  return Value::integer(at - items.begin());
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
};

constexpr NamedMethod kDictMethods[] = {
    {"get", get_method},
    {"items", view<ObjectKind::kItems>},
    {"keys", view<ObjectKind::kKeys>},
    {"values", view<ObjectKind::kValues>},
    {"copy", copy},
};

constexpr NamedMethod kListMethods[] = {
    {"count", count_in_list},
    {"index", index_in_list},
    {"copy", copy},
};

constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListChanges[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};

template <typename Methods, typename Changes>
std::optional<Value> choose(const Value& self, std::string_view name, const Methods& methods,
                            const Changes& changes) {
  if (std::find(std::begin(changes), std::end(changes), name) != std::end(changes)) {
    return Value::undefined(std::string(self.type_name()) + "." + std::string(name) +
                            "() changes its object: not allowed");
  }
  for (const NamedMethod& entry : methods) {
    if (entry.name != name) continue;
    return make_function(
        std::string(name), 1 + self.depth(),
        [self, method = entry.method](Interpreter& in, const Arguments& arguments) {
          return method(in, self, arguments);
        });
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> find_method(Budget& budget, const Value& self, std::string_view name) {
  static constexpr std::string_view kNoChanges[] = {""};
  if (self.is_string()) return choose(self, name, kStringMethods, kNoChanges);
  if (self.is(ObjectKind::kDict)) return choose(self, name, kDictMethods, kDictChanges);
  if (self.is(ObjectKind::kList)) return choose(self, name, kListMethods, kListChanges);
  if (self.is(ObjectKind::kTuple) && name != "copy") {
    return choose(self, name, kListMethods, kNoChanges);
  }
  return std::nullopt;
}

}  // namespace orthrus::jinja
