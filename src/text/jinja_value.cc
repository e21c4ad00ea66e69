#include "text/jinja_value.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

void Budget::step(uint64_t count) {
  steps_ += count;
  if (steps_ > kMaxSteps) fail("rendering takes more than {} steps", kMaxSteps);
}

void Budget::bytes(uint64_t count) {
  if (count > kMaxBytes - bytes_) fail("rendering needs more than {} MiB", kMaxBytes >> 20);
  bytes_ += count;
  step(count / 256);
}

Value Value::undefined(std::string why) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

Value Value::string(std::string text) {
  return Value(std::make_shared<const std::string>(std::move(text)));
}

Value Value::markup(std::string text) {
  Value value;
  value.data_ = Markup{std::make_shared<const std::string>(std::move(text))};
  return value;
}

bool Value::is_callable() const {
  return is(ObjectKind::kFunction) || is(ObjectKind::kMacro) || is(ObjectKind::kLoop) ||
         is_undefined();
}

Int Value::integer() const {
  const bool* boolean = std::get_if<bool>(&data_);
  return boolean != nullptr ? static_cast<Int>(*boolean) : std::get<Int>(data_);
}

double Value::number() const {
  return is_float() ? std::get<double>(data_) : static_cast<double>(integer());
}

const Object* Value::object() const {
  const auto* object = std::get_if<std::shared_ptr<Object>>(&data_);
  return object == nullptr ? nullptr : object->get();
}

std::string_view Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_string()) return is_markup() ? "Markup" : "str";
  static constexpr std::string_view kNames[] = {
      "list", "tuple",     "range",    "dict_keys", "dict_values", "dict_items", "generator",
      "dict", "Namespace", "function", "Macro",     "LoopContext", "Cycler"};
  return kNames[static_cast<size_t>(object()->kind)];
}

bool Value::truth() const {
  if (is_none() || is_undefined()) return false;
  if (is_number()) return is_float() ? number() != 0 : integer() != 0;
  if (is_string()) return !string().empty();
  switch (object()->kind) {
    case ObjectKind::kDict:
      return !as<Mapping>()->entries.empty();
    case ObjectKind::kList:
    case ObjectKind::kTuple:
    case ObjectKind::kRange:
    case ObjectKind::kKeys:
    case ObjectKind::kValues:
    case ObjectKind::kItems:
      return !as<Sequence>()->items.empty();
    default:
      return true;
  }
}

const Value* Mapping::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.is_string() && name.string() == key) return &value;
  }
  return nullptr;
}

bool Loop::fill_one() {
  std::optional<Value> item = pull ? pull() : std::nullopt;
  if (!item) return false;
  ahead.push_back(std::move(*item));
  return true;
}

bool Loop::advance() {
  if (ahead.empty() && !fill_one()) return false;
  before = std::move(current);
  current = std::move(ahead.front());
  ahead.pop_front();
  ++index0;
  return true;
}

namespace {

int checked_depth(int depth) {
  if (depth > Budget::kMaxDepth) fail("values nest deeper than {}", Budget::kMaxDepth);
  return depth;
}

bool is_sequence(const Value& value) {
  return value.object() != nullptr && value.object()->kind <= ObjectKind::kItems;
}

bool equal_items(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&](const Value& x, const Value& y) { return equal(budget, x, y); });
}

bool equal_dicts(Budget& budget, const Mapping& a, const Mapping& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = find(budget, b, entry.first);
    return other != nullptr && equal(budget, entry.second, *other);
  });
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  const double x = a.number();
  const double y = b.number();
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

}  // namespace

Value make_sequence(Budget& budget, ObjectKind kind, std::vector<Value> items) {
  budget.bytes(sizeof(Sequence) + items.size() * sizeof(Value));
  auto sequence = std::make_shared<Sequence>(kind);
  for (const Value& item : items) sequence->depth = std::max(sequence->depth, 1 + item.depth());
  checked_depth(sequence->depth);
  sequence->items = std::move(items);
  return Value(std::shared_ptr<Object>(std::move(sequence)));
}

Value make_dict(Budget& budget, Entries entries) {
  budget.bytes(sizeof(Mapping) + entries.size() * 2 * sizeof(Value));
  auto dict = std::make_shared<Mapping>(ObjectKind::kDict);
  for (const auto& [key, value] : entries) {
    dict->depth = std::max({dict->depth, 1 + key.depth(), 1 + value.depth()});
  }
  checked_depth(dict->depth);
  dict->entries = std::move(entries);
  return Value(std::shared_ptr<Object>(std::move(dict)));
}

Value make_string(Budget& budget, std::string text) {
  budget.bytes(text.size() + sizeof(std::string));
  return Value::string(std::move(text));
}

Value make_function(std::string name, int depth,
                    std::function<Value(Interpreter&, const Arguments&)> call) {
  auto function = std::make_shared<Function>();
  function->name = std::move(name);
  function->depth = checked_depth(depth);
  function->call = std::move(call);
  return Value(std::shared_ptr<Object>(std::move(function)));
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.is_string() && b.is_string()) {
    budget.step(std::min(a.string().size(), b.string().size()) / 256);
    return a.string() == b.string();
  }
  if (a.is_none() || a.is_undefined() || a.object() == nullptr || b.object() == nullptr) {
    return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
  }
  if (a.object() == b.object()) return true;
  if (a.object()->kind != b.object()->kind) return false;
  switch (a.object()->kind) {
    case ObjectKind::kList:
    case ObjectKind::kTuple:
    case ObjectKind::kRange:
    case ObjectKind::kKeys:
    case ObjectKind::kItems:
      return equal_items(budget, a.as<Sequence>()->items, b.as<Sequence>()->items);
    case ObjectKind::kDict:
      return equal_dicts(budget, *a.as<Mapping>(), *b.as<Mapping>());
    default:
      return false;
  }
}

int compare(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    budget.step(std::min(a.string().size(), b.string().size()) / 256);
    const int order = a.string().compare(b.string());
    return order < 0 ? -1 : order > 0;
  }
  for (ObjectKind kind : {ObjectKind::kList, ObjectKind::kTuple}) {
    if (!a.is(kind) || !b.is(kind)) continue;
    const auto& x = a.as<Sequence>()->items;
    const auto& y = b.as<Sequence>()->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(budget, x[i], y[i])) return compare(budget, x[i], y[i]);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) fail("{}", side->why_undefined());
  }
  fail("'{}' and '{}' have no order", a.type_name(), b.type_name());
}

bool contains(Budget& budget, const Value& a, const Value& b) {
  if (b.is_string()) {
    if (!a.is_string()) fail("'in <string>' requires a string, not '{}'", a.type_name());
    budget.step(b.string().size() / 64);
    return b.string().find(a.string()) != std::string::npos;
  }
  if (b.is(ObjectKind::kDict)) return find(budget, *b.as<Mapping>(), a) != nullptr;
  if (b.is(ObjectKind::kIterator)) {
    Sequence& sequence = *b.as<Sequence>();
    while (sequence.next < sequence.items.size()) {
      if (equal(budget, sequence.items[sequence.next++], a)) return true;
    }
    return false;
  }
  if (b.is_undefined()) return false;
  if (!is_sequence(b)) fail("'{}' is not iterable", b.type_name());
  const auto& items = b.as<Sequence>()->items;
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return equal(budget, item, a); });
}

std::vector<Value> elements(Budget& budget, const Value& value) {
  if (value.is_undefined()) return {};
  std::vector<Value> items;
  if (value.is_string()) {
    budget.bytes(value.string().size() * (sizeof(Value) + sizeof(std::string)));
    for (std::string_view character : characters(value.string())) {
      items.push_back(Value::string(std::string(character)));
    }
  } else if (value.is(ObjectKind::kDict)) {
    for (const auto& entry : value.as<Mapping>()->entries) items.push_back(entry.first);
  } else if (value.is(ObjectKind::kIterator)) {
    Sequence& sequence = *value.as<Sequence>();
    items.assign(sequence.items.begin() + static_cast<ptrdiff_t>(sequence.next),
                 sequence.items.end());
    sequence.next = sequence.items.size();
  } else if (is_sequence(value)) {
    items = value.as<Sequence>()->items;
  } else {
    fail("'{}' is not iterable", value.type_name());
  }
  budget.step(items.size());
  return items;
}

int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return static_cast<int64_t>(count_characters(value.string()));
  if (value.is(ObjectKind::kDict)) {
    return static_cast<int64_t>(value.as<Mapping>()->entries.size());
  }
  if (!is_sequence(value)) fail("'{}' has no length", value.type_name());
  return static_cast<int64_t>(value.as<Sequence>()->items.size());
}

bool is_key(const Value& value) {
  for (ObjectKind kind :
       {ObjectKind::kList, ObjectKind::kDict, ObjectKind::kKeys, ObjectKind::kItems}) {
    if (value.is(kind)) return false;
  }
  if (!value.is(ObjectKind::kTuple)) return true;
  const auto& items = value.as<Sequence>()->items;
  return std::all_of(items.begin(), items.end(), is_key);
}

void check_key(const Value& key) {
  if (!is_key(key)) fail("'{}' cannot be a dictionary key", key.type_name());
}

const Value* find(Budget& budget, const Mapping& map, const Value& key) {
  check_key(key);
  for (const auto& [name, value] : map.entries) {
    if (equal(budget, name, key)) return &value;
  }
  return nullptr;
}

void put(Budget& budget, Entries& entries, Value key, Value value) {
  check_key(key);
  for (auto& [name, old] : entries) {
    if (equal(budget, name, key)) {
      old = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

}  // namespace orthrus::jinja
