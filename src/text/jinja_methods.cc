// The methods of lists, tuples and dicts that templates may call, and how they bind.
#include <algorithm>
#include <span>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_markup.h"

namespace orthrus::jinja {

namespace {

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

Value fromkeys(Interpreter& in, const Value&, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("fromkeys() takes no keyword arguments");
  const Bound bound("fromkeys()", arguments, {"iterable", "value"}, 1);
  Entries entries;
  for (const Value& key : elements(in.budget(), bound[0])) {
    put(in.budget(), entries, key, bound.has(1) ? bound[1] : Value());
  }
  return make_dict(in.budget(), std::move(entries));
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

constexpr NamedMethod kDictMethods[] = {
    {"get", get_method},
    {"items", view<ObjectKind::kItems>},
    {"keys", view<ObjectKind::kKeys>},
    {"values", view<ObjectKind::kValues>},
    {"copy", copy},
    {"fromkeys", fromkeys},
};

constexpr NamedMethod kListMethods[] = {
    {"count", count_in_list},
    {"index", index_in_list},
    {"copy", copy},
};

constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListChanges[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};

std::optional<Value> choose(const Value& self, std::string_view name,
                            std::span<const NamedMethod> methods,
                            std::span<const std::string_view> changes) {
  if (std::find(changes.begin(), changes.end(), name) != changes.end()) {
    return Value::undefined(std::string(self.type_name()) + "." + std::string(name) +
                            "() changes its object: not allowed");
  }
  for (const NamedMethod& entry : methods) {
    if (entry.name != name) continue;
    return make_function(std::string(name), 1 + self.depth(),
                         [self, name = entry.name, method = entry.method](
                             Interpreter& in, const Arguments& arguments) {
                           return self.is_markup() ? call_marked(in, name, method, self, arguments)
                                                   : method(in, self, arguments);
                         });
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> find_method(Budget& budget, const Value& self, std::string_view name) {
  if (self.is_string()) return choose(self, name, string_methods(), {});
  if (self.is(ObjectKind::kDict)) return choose(self, name, kDictMethods, kDictChanges);
  if (self.is(ObjectKind::kList)) return choose(self, name, kListMethods, kListChanges);
  if (self.is(ObjectKind::kTuple) && name != "copy") {
    if (self.as<Sequence>()->group && (name == "grouper" || name == "list")) {
      return self.as<Sequence>()->items[name == "list"];
    }
    return choose(self, name, kListMethods, {});
  }
  return std::nullopt;
}

}  // namespace orthrus::jinja
