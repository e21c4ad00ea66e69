// Filters that choose, change and group the items of a sequence.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_sequences.h"

namespace orthrus::jinja {

namespace {

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

constexpr int64_t kMaxParts = 1'000'000;

Value slice(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t count = bound.integer(0, 1);
  const std::vector<Value> items = elements(in.budget(), input);
  if (count == 0) fail("slice: division by zero");
  if (count > kMaxParts) fail("slice: too many slices");
  std::vector<Value> slices;
  const Value* fill = given(bound, 1);
  auto at = items.begin();
  const auto size = static_cast<int64_t>(items.size());
  for (int64_t i = 0; i < count; ++i) {
    const bool longer = i < size % count;
    const auto end = at + size / count + longer;
    std::vector<Value> part(at, end);
    if (fill != nullptr && !longer) part.push_back(*fill);
    slices.push_back(list_of(in, std::move(part)));
    at = end;
  }
  return iterator_of(in, std::move(slices));
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
      if (missing > kMaxParts) fail("batch: lines too long");
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
    groups.back().as<Sequence>()->group = true;
    start = end;
  }
  return list_of(in, std::move(groups));
}

}  // namespace

Filter find_select_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"map", map},
      {"select", select<true, false>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
      {"batch", batch},
      {"slice", slice},
      {"groupby", groupby},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
