// Filters on sequences and mappings.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

Value list_of(Interpreter& in, std::vector<Value> items) {
  return make_sequence(in.budget(), ObjectKind::kList, std::move(items));
}

Value iterator_of(Interpreter& in, std::vector<Value> items) {
  return make_sequence(in.budget(), ObjectKind::kIterator, std::move(items));
}

/// item.a.b.0 of the attribute "a.b.0"; the item itself where there is no attribute.
Value follow(Interpreter& in, Value item, const Value* attribute, const Value* otherwise) {
  if (attribute == nullptr || attribute->is_none()) return item;
  std::vector<Value> parts;
  if (attribute->is_string()) {
    for (const std::string& part : split(attribute->string(), ".", -1, false)) {
      const bool number = part.size() < 18 && all_are(part, CharacterClass::kDecimal);
      parts.push_back(number ? Value::integer(std::stoll(part)) : Value::string(part));
    }
  } else {
    parts.push_back(*attribute);
  }
  for (const Value& part : parts) {
    item = in.item(item, part);
    if (otherwise != nullptr && item.is_undefined()) item = *otherwise;
  }
  return item;
}

Value fold_case(Interpreter& in, Value value, bool case_sensitive) {
  return case_sensitive || !value.is_string() ? value : in.string(lower(value.string()));
}

const Value* given(const Bound& bound, size_t index) {
  return bound.has(index) && !bound[index].is_none() ? &bound[index] : nullptr;
}

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
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
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
  return in.string(std::move(text));
}

using Keyed = std::pair<Value, Value>;  // what an item is ordered by, and the item

/// Stable, in comparisons that the budget counts.
void sort_keyed(Interpreter& in, std::vector<Keyed>& items, bool reversed) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? compare(in.budget(), b.first, a.first) == -1
                    : compare(in.budget(), a.first, b.first) == -1;
  });
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

std::string name_argument(std::string_view filter, const Arguments& arguments, size_t index) {
  if (arguments.positional.size() <= index || !arguments.positional[index].is_string()) {
    fail("{} needs a name", filter);
  }
  return arguments.positional[index].string();
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

Value map_attribute(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("map", arguments, {"attribute", "default"}, 1);
  std::vector<Value> mapped;
  for (const Value& item : elements(in.budget(), input)) {
    mapped.push_back(follow(in, item, &bound[0], given(bound, 1)));
  }
  return iterator_of(in, std::move(mapped));
}

Value map(Interpreter& in, const Value& input, const Arguments& arguments) {
  if (!input.truth()) return iterator_of(in, {});
  const bool by_attribute =
      arguments.positional.empty() &&
      std::any_of(arguments.named.begin(), arguments.named.end(),
                  [](const auto& entry) { return entry.first == "attribute"; });
  if (by_attribute) return map_attribute(in, input, arguments);
  const std::string name = name_argument("map", arguments, 0);
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail("unknown filter '{}'", name);
  const Arguments rest = without_first(arguments, 1);
  const Interpreter::Deeper deeper(in);  // map may map by map
  std::vector<Value> mapped;
  for (const Value& item : elements(in.budget(), input)) {
    mapped.push_back(filter(in, item, rest));
  }
  return iterator_of(in, std::move(mapped));
}

/// select, reject, selectattr, rejectattr.
template <bool wanted, bool by_attribute>
Value select(Interpreter& in, const Value& input, const Arguments& arguments) {
  if (!input.truth()) return iterator_of(in, {});
  const Value* attribute = nullptr;
  if (by_attribute) {
    if (arguments.positional.empty()) fail("selectattr and rejectattr need an attribute");
    attribute = &arguments.positional[0];
  }
  constexpr size_t kTestAt = by_attribute ? 1 : 0;
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > kTestAt) {
    const std::string name = name_argument("select", arguments, kTestAt);
    test = find_test(name);
    if (test == nullptr) fail("unknown test '{}'", name);
    rest = without_first(arguments, kTestAt + 1);
  }
  std::vector<Value> selected;
  for (const Value& item : elements(in.budget(), input)) {
    const Value tested = follow(in, item, attribute, nullptr);
    const bool passes = test != nullptr ? test(in, tested, rest) : tested.truth();
    if (passes == wanted) selected.push_back(item);
  }
  return iterator_of(in, std::move(selected));
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

Value batch(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = bound.integer(0, 1);
  std::vector<Value> lines;
  std::vector<Value> line;
  for (const Value& item : elements(in.budget(), input)) {
    if (static_cast<int64_t>(line.size()) == size)
      lines.push_back(list_of(in, std::exchange(line, {})));
    line.push_back(item);
  }
  if (!line.empty()) {
    const Value* fill = given(bound, 1);
    const int64_t missing = fill != nullptr ? size - static_cast<int64_t>(line.size()) : 0;
    if (missing > 0) {
      if (missing > 1'000'000) fail("batch: lines too long");
      in.budget().bytes(static_cast<uint64_t>(missing) * sizeof(Value));
      line.insert(line.end(), static_cast<size_t>(missing), *fill);
    }
    lines.push_back(list_of(in, std::move(line)));
  }
  return iterator_of(in, std::move(lines));
}

Value groupby(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  std::vector<Keyed> items;
  for (const Value& item : elements(in.budget(), input)) {
    const Value key = follow(in, item, &bound[0], given(bound, 1));
    items.emplace_back(fold_case(in, key, bound.truth(2, false)), item);
  }
  sort_keyed(in, items, false);
  std::vector<Value> groups;
  for (size_t start = 0; start < items.size();) {
    std::vector<Value> members;
    size_t end = start;
    while (end < items.size() && equal(in.budget(), items[start].first, items[end].first)) {
      members.push_back(items[end++].second);
    }
    const Value key = follow(in, members[0], &bound[0], given(bound, 1));
    groups.push_back(
        make_sequence(in.budget(), ObjectKind::kTuple, {key, list_of(in, std::move(members))}));
    start = end;
  }
  return list_of(in, std::move(groups));
}

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"length", count},
      {"count", count},
      {"list", list},
      {"first", first},
      {"last", last},
      {"join", join},
      {"reverse", reverse},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", extreme<-1>},
      {"max", extreme<1>},
      {"sum", sum},
      {"items", items},
      {"map", map},
      {"select", select<true, false>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
      {"default", default_filter},
      {"d", default_filter},
      {"attr", attr},
      {"batch", batch},
      {"groupby", groupby},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
