// Evaluation of names, operators, calls and subscripts.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_markup.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

const Value* Interpreter::lookup(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [known, value] : scope->names) {
      if (known == name) return &value;
    }
  }
  return find_global(name);
}

Value Interpreter::evaluate_name(const Expression& node) {
  const Value* value = lookup(node.name);
  return value != nullptr ? *value : Value::undefined("'" + node.name + "' is undefined");
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& nodes) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const auto& node : nodes) values.push_back(evaluate(*node));
  return values;
}

Value Interpreter::evaluate_dict(const Expression& node) {
  Entries entries;
  for (size_t i = 0; i < node.items.size(); i += 2) {
    Value key = evaluate(*node.items[i]);
    put(budget_, entries, std::move(key), evaluate(*node.items[i + 1]));
  }
  return make_dict(budget_, std::move(entries));
}

bool Interpreter::compare_pair(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(budget_, a, b);
  if (op == "!=") return !equal(budget_, a, b);
  if (op == "in") return contains(budget_, a, b);
  if (op == "notin") return !contains(budget_, a, b);
  const int order = compare(budget_, a, b);
  if (op == "<") return order == -1;
  if (op == "<=") return order == -1 || order == 0;
  if (op == ">") return order == 1;
  return order == 1 || order == 0;
}

/// a < b < c: each operand once, and only as far as needed.
bool Interpreter::evaluate_comparison(const Expression& node) {
  Value left = evaluate(*node.items[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.items[i + 1]);
    if (!compare_pair(node.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_concat(const Expression& node) {
  const std::vector<Value> values = evaluate_all(node.items);
  std::string whole;
  for (const Value& value : values) whole += text(value);
  return string(std::move(whole));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& nodes) {
  Arguments arguments;
  arguments.positional = evaluate_all(nodes.positional);
  if (nodes.star) {
    for (Value& value : elements(budget_, evaluate(*nodes.star))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  for (const auto& [name, node] : nodes.named) arguments.named.emplace_back(name, evaluate(*node));
  if (nodes.double_star) {
    const Value more = evaluate(*nodes.double_star);
    if (!more.is(ObjectKind::kDict)) fail("the argument after ** must be a mapping");
    for (const auto& [key, value] : more.as<Mapping>()->entries) {
      if (!key.is_string()) fail("keywords must be strings");
      budget_.step(arguments.named.size());
      for (const auto& [name, old] : arguments.named) {
        if (name == key.string()) fail("argument '{}' is given twice", name);
      }
      arguments.named.emplace_back(key.string(), value);
    }
  }
  budget_.bytes((arguments.positional.size() + arguments.named.size()) * sizeof(Value));
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node) {
  const Value callee = evaluate(*node.items[0]);
  const Arguments arguments = evaluate_arguments(node.arguments);
  line_ = node.line;
  return call(callee, arguments);
}

Value Interpreter::evaluate_filter(const Expression& node) {
  const Value input = node.items[0] ? evaluate(*node.items[0]) : captured_;
  const Arguments arguments = evaluate_arguments(node.arguments);
  line_ = node.line;
  return node.filter(*this, input, arguments);
}

namespace {

/// Where [start:stop:step] begins and ends among `size` elements, by Python's rules.
std::pair<int64_t, int64_t> slice_bounds(int64_t size, const Value& start, const Value& stop,
                                         int64_t step) {
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? size : size - 1;
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const int64_t index = to_int64(bound);
    return std::clamp(index < 0 ? index + size : index, lowest, highest);
  };
  return {clamp(start, step > 0 ? lowest : highest), clamp(stop, step > 0 ? highest : lowest)};
}

/// The indices that [start:stop:step] takes of `size` elements.
std::vector<int64_t> slice_indices(int64_t size, const Value& start, const Value& stop,
                                   const Value& step_value) {
  for (const Value* bound : {&start, &stop, &step_value}) {
    if (!bound->is_none() && !bound->is_integer()) fail("slice indices must be integers");
  }
  const int64_t step = step_value.is_none() ? 1 : to_int64(step_value);
  if (step == 0) fail("slice step cannot be zero");
  const auto [from, to] = slice_bounds(size, start, stop, step);
  std::vector<int64_t> indices;
  for (Int i = from; step > 0 ? i < to : i > to; i += step) {
    indices.push_back(static_cast<int64_t>(i));
  }
  return indices;
}

/// text[start:stop].
std::string_view cut(std::string_view text, const Value& start, const Value& stop) {
  for (const Value* bound : {&start, &stop}) {
    if (!bound->is_none() && !bound->is_integer()) fail("slice indices must be integers");
  }
  const auto size = static_cast<int64_t>(count_characters(text));
  const auto place = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const int64_t index = to_int64(bound);
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const int64_t from = place(start, 0);
  const int64_t to = std::max(from, place(stop, size));
  text.remove_prefix(character_offset(text, static_cast<size_t>(from)));
  return text.substr(0, character_offset(text, static_cast<size_t>(to - from)));
}

/// The range that a slice of a range is.
Value slice_of(Budget& budget, const Range& range, const Value& start, const Value& stop,
               const Value& step_value) {
  const auto size = static_cast<int64_t>(range.items.size());
  const auto indices = slice_indices(size, start, stop, step_value);
  const int64_t step = step_value.is_none() ? 1 : to_int64(step_value);
  const auto bounds = slice_bounds(size, start, stop, step);
  auto made = std::make_shared<Range>();
  made->start = range.start + bounds.first * range.step;
  made->stop = range.start + bounds.second * range.step;
  made->step = range.step * step;
  budget.bytes(indices.size() * sizeof(Value));
  for (const int64_t i : indices) made->items.push_back(range.items[static_cast<size_t>(i)]);
  return Value(std::shared_ptr<Object>(std::move(made)));
}

bool is_indexable(const Value& value) {
  return value.is(ObjectKind::kList) || value.is(ObjectKind::kTuple) ||
         value.is(ObjectKind::kRange);
}

}  // namespace

Value Interpreter::evaluate_slice(const Expression& node) {
  const Value object = evaluate(*node.items[0]);
  const auto bound = [&](size_t i) { return node.items[i] ? evaluate(*node.items[i]) : Value(); };
  const Value start = bound(1);
  const Value stop = bound(2);
  const Value step = bound(3);
  line_ = node.line;
  if (object.is_undefined()) fail("{}", object.why_undefined());
  if (object.is_string()) {
    const std::string& whole = object.string();
    if (step.is_none()) return like(budget_, object, std::string(cut(whole, start, stop)));
    budget_.bytes(whole.size() * (sizeof(std::string_view) + sizeof(int64_t)));
    const auto all = characters(whole);
    std::string part;
    for (int64_t i : slice_indices(static_cast<int64_t>(all.size()), start, stop, step)) {
      part += all[static_cast<size_t>(i)];
    }
    return like(budget_, object, std::move(part));
  }
  if (object.is(ObjectKind::kRange))
    return slice_of(budget_, *object.as<Range>(), start, stop, step);
  if (!is_indexable(object)) fail("'{}' cannot be sliced", object.type_name());
  const auto sequence = object.as<Sequence>();
  budget_.bytes(sequence->items.size() * sizeof(int64_t));
  std::vector<Value> part;
  for (int64_t i : slice_indices(length(object), start, stop, step)) {
    part.push_back(sequence->items[static_cast<size_t>(i)]);
  }
  const bool is_tuple = sequence->kind == ObjectKind::kTuple;
  return make_sequence(budget_, is_tuple ? ObjectKind::kTuple : ObjectKind::kList, std::move(part));
}

std::optional<Value> Interpreter::macro_attribute(const Value& object, std::string_view name) {
  const Signature& signature = *object.as<Macro>()->signature;
  if (name == "name") return Value::string(signature.name);
  if (name == "catch_kwargs") return Value(signature.uses_kwargs);
  if (name == "catch_varargs") return Value(signature.uses_varargs);
  if (name == "caller") return Value(signature.uses_caller);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const std::string& parameter : signature.parameters) names.push_back(string(parameter));
  return make_sequence(budget_, ObjectKind::kTuple, std::move(names));
}

std::optional<Value> Interpreter::attribute_only(const Value& object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) {
    return Value::undefined("attribute '" + std::string(name) + "' is not safe");
  }
  if (object.is(ObjectKind::kLoop)) return loop_attribute(budget_, object, name);
  if (object.is(ObjectKind::kCycler)) return cycler_attribute(object, name);
  if (object.is(ObjectKind::kNamespace)) {
    const Value* value = object.as<Mapping>()->find(name);
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  if (object.is(ObjectKind::kMacro)) return macro_attribute(object, name);
  if (object.is(ObjectKind::kRange)) {
    const auto range = object.as<Range>();
    if (name == "start") return Value(range->start);
    if (name == "stop") return Value(range->stop);
    if (name == "step") return Value(range->step);
  }
  return find_method(budget_, object, name);
}

std::optional<Value> Interpreter::item_only(const Value& object, const Value& key) {
  if (object.is(ObjectKind::kDict)) {
    if (!is_key(key)) return std::nullopt;
    const Value* value = find(budget_, *object.as<Mapping>(), key);
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  if (!key.is_integer() || (!object.is_string() && !is_indexable(object))) return std::nullopt;
  const int64_t size = length(object);
  int64_t index = to_int64(key);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  if (!object.is_string()) return object.as<Sequence>()->items[static_cast<size_t>(index)];
  std::string_view rest = object.string();
  budget_.step(rest.size() / 64);
  rest.remove_prefix(character_offset(rest, static_cast<size_t>(index)));
  return like(budget_, object, std::string(rest.substr(0, character_offset(rest, 1))));
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  budget_.step();
  if (object.is_undefined()) fail("{}", object.why_undefined());
  if (auto value = attribute_only(object, name)) return *value;
  if (object.is(ObjectKind::kDict)) {
    const auto& entries = *object.as<Mapping>();
    budget_.step(entries.entries.size() / 8);
    if (const Value* value = entries.find(name)) return *value;
  }
  return Value::undefined("'" + std::string(object.type_name()) + " object' has no attribute '" +
                          std::string(name) + "'");
}

Value Interpreter::item(const Value& object, const Value& key) {
  budget_.step();
  if (object.is_undefined()) fail("{}", object.why_undefined());
  if (auto value = item_only(object, key)) return *value;
  if (key.is_string()) {
    if (auto value = attribute_only(object, key.string())) return *value;
  }
  return Value::undefined("'" + std::string(object.type_name()) + " object' has no element " +
                          to_repr(budget_, key));
}

}  // namespace orthrus::jinja
