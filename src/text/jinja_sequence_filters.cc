// Filters on sequences and mappings.
#include <algorithm>
#include <random>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_markup.h"
#include "text/jinja_sequences.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

Value count(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("length", arguments, {});
  return Value::integer(length(input));
}

Value list(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("list", arguments, {});
  return list_of(in, elements(in.budget(), input));
}

Value first(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("first", arguments, {});
  if (input.is(ObjectKind::kIterator)) {
    Sequence& sequence = *input.as<Sequence>();
    if (sequence.next < sequence.items.size()) return sequence.items[sequence.next++];
  } else {
    const auto items = elements(in.budget(), input);
    if (!items.empty()) return items.front();
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("last", arguments, {});
  if (input.is(ObjectKind::kIterator)) fail("last: a generator cannot be reversed");
  const auto items = elements(in.budget(), input);
  if (items.empty()) return Value::undefined("No last item, sequence was empty.");
  return input.is_markup() ? Value::markup(items.back().string()) : items.back();
}

Value random(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("random", arguments, {});
  if (input.is(ObjectKind::kIterator)) fail("random: a generator has no length");
  const auto items = elements(in.budget(), input);
  if (items.empty()) return Value::undefined("No random item, sequence was empty.");
  std::random_device device;
  return items[std::uniform_int_distribution<size_t>(0, items.size() - 1)(device)];
}

Value join(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const std::string separator = bound.has(0) ? in.text(bound[0]) : "";
  std::string whole;
  bool is_first = true;
  for (const Value& item : elements(in.budget(), input)) {
    if (!is_first) {
      in.budget().bytes(separator.size());
      whole += separator;
    }
    is_first = false;
    whole += in.text(follow(in, item, given(bound, 1), nullptr));
  }
  return in.string(std::move(whole));
}

Value reverse(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("reverse", arguments, {});
  std::vector<Value> items = elements(in.budget(), input);
  std::reverse(items.begin(), items.end());
  if (!input.is_string()) {
    return input.is(ObjectKind::kIterator) ? list_of(in, std::move(items))
                                           : iterator_of(in, std::move(items));
  }
  std::string text;
  for (const Value& character : items) text += character.string();
  return like(in.budget(), input, std::move(text));
}

Value values_of(Interpreter& in, std::vector<Keyed> items) {
  std::vector<Value> values;
  for (Keyed& item : items) values.push_back(std::move(item.second));
  return list_of(in, std::move(values));
}

Value sort(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound.truth(1, false);
  std::vector<Value> attributes;
  if (const Value* attribute = given(bound, 2); attribute != nullptr && attribute->is_string()) {
    for (std::string& part : split(attribute->string(), ",", -1, false)) {
      attributes.push_back(Value::string(std::move(part)));
    }
  } else {
    attributes.push_back(attribute == nullptr ? Value() : *attribute);
  }
  std::vector<Keyed> items;
  for (const Value& item : elements(in.budget(), input)) {
    std::vector<Value> keys;
    for (const Value& attribute : attributes) {
      keys.push_back(fold_case(in, follow(in, item, &attribute, nullptr), case_sensitive));
    }
    items.emplace_back(list_of(in, std::move(keys)), item);
  }
  sort_keyed(in, items, bound.truth(0, false));
  return values_of(in, std::move(items));
}

Value dictsort(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.has(1) ? bound.string(1) : "key";
  if (by != "key" && by != "value") fail("dictsort: sorts by \"key\" or \"value\"");
  if (!input.is(ObjectKind::kDict)) fail("dictsort: expected a mapping");
  std::vector<Keyed> items;
  for (const auto& [key, value] : input.as<Mapping>()->entries) {
    items.emplace_back(fold_case(in, by == "key" ? key : value, bound.truth(0, false)),
                       make_sequence(in.budget(), ObjectKind::kTuple, {key, value}));
  }
  sort_keyed(in, items, bound.truth(2, false));
  return values_of(in, std::move(items));
}

Value unique(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  Entries seen;
  std::vector<Value> items;
  for (const Value& item : elements(in.budget(), input)) {
    const Value key =
        fold_case(in, follow(in, item, given(bound, 1), nullptr), bound.truth(0, false));
    const size_t before = seen.size();
    put(in.budget(), seen, key, Value());
    if (seen.size() > before) items.push_back(item);
  }
  return iterator_of(in, std::move(items));
}

template <int sign>
Value extreme(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound(sign < 0 ? "min" : "max", arguments, {"case_sensitive", "attribute"});
  std::optional<Keyed> best;
  for (const Value& item : elements(in.budget(), input)) {
    const Value key =
        fold_case(in, follow(in, item, given(bound, 1), nullptr), bound.truth(0, false));
    if (!best || compare(in.budget(), key, best->first) == sign) best = Keyed(key, item);
  }
  return best ? best->second : Value::undefined("No aggregated item, sequence was empty.");
}

Value sum(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.has(1) ? bound[1] : Value::integer(0);
  if (total.is_string()) fail("sum: strings are joined, not summed");
  for (const Value& item : elements(in.budget(), input)) {
    total = binary(in.budget(), "+", total, follow(in, item, given(bound, 0), nullptr));
  }
  return total;
}

Value items(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("items", arguments, {});
  std::vector<Value> pairs;
  if (!input.is_undefined()) {
    if (!input.is(ObjectKind::kDict)) fail("items: expected a mapping");
    for (const auto& [key, value] : input.as<Mapping>()->entries) {
      pairs.push_back(make_sequence(in.budget(), ObjectKind::kTuple, {key, value}));
    }
  }
  return iterator_of(in, std::move(pairs));
}

Value default_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool replaced = input.is_undefined() || (bound.truth(1, false) && !input.truth());
  if (!replaced) return input;
  return bound.has(0) ? bound[0] : Value::string("");
}

Value attr(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"}, 1);
  if (input.is(ObjectKind::kDict) && !find_method(in.budget(), input, bound.string(0))) {
    return Value::undefined("a dict has no attribute '" + bound.string(0) + "'");
  }
  return in.attribute(input, bound.string(0));
}

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"length", count},     {"count", count},
      {"list", list},        {"first", first},
      {"last", last},        {"random", random},
      {"join", join},        {"reverse", reverse},
      {"sort", sort},        {"dictsort", dictsort},
      {"unique", unique},    {"min", extreme<-1>},
      {"max", extreme<1>},   {"sum", sum},
      {"items", items},      {"default", default_filter},
      {"d", default_filter}, {"attr", attr},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
