// Arithmetic by Python's rules, and how arguments meet parameters.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_markup.h"

namespace orthrus::jinja {

Bound::Bound(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> parameters, size_t required)
    : function_(function), values_(parameters.size(), nullptr) {
  if (arguments.positional.size() > parameters.size()) {
    fail("{} takes at most {} arguments, given {}", function, parameters.size(),
         arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) fail("{} has no argument '{}'", function, name);
    const Value*& slot = values_[static_cast<size_t>(found - parameters.begin())];
    if (slot != nullptr) fail("{} got argument '{}' twice", function, name);
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) fail("{} needs argument '{}'", function, parameters.begin()[i]);
  }
}

int64_t Bound::integer(size_t index, int64_t otherwise) const {
  if (!has(index)) return otherwise;
  const Value& value = *values_[index];
  if (!value.is_integer()) fail("{} takes an integer, given '{}'", function_, value.type_name());
  return to_int64(value);
}

bool Bound::truth(size_t index, bool otherwise) const {
  return has(index) ? values_[index]->truth() : otherwise;
}

const std::string& Bound::string(size_t index) const {
  const Value& value = *values_[index];
  if (!value.is_string()) fail("{} takes a string, given '{}'", function_, value.type_name());
  return value.string();
}

std::optional<std::string_view> Bound::optional_string(size_t index) const {
  if (!has(index) || values_[index]->is_none()) return std::nullopt;
  return string(index);
}

int64_t to_int64(const Value& value) {
  if (!value.is_integer()) fail("expected an integer, found '{}'", value.type_name());
  constexpr Int kLowest = std::numeric_limits<int64_t>::min();
  constexpr Int kHighest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value.integer(), kLowest, kHighest));
}

namespace {

[[noreturn]] void fail_types(std::string_view op, const Value& a, const Value& b) {
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) fail("{}", side->why_undefined());
  }
  fail("unsupported operands for {}: '{}' and '{}'", op, a.type_name(), b.type_name());
}

Int floor_divide(Int a, Int b) {
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int integer_power(Int base, Int exponent) {
  Int result = 1;
  bool overflow = false;
  while (exponent > 0 && !overflow) {
    if (exponent & 1) overflow = __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    if (exponent > 0) overflow = overflow || __builtin_mul_overflow(base, base, &base);
  }
  if (overflow) fail("integer too large");
  return result;
}

Value integer_arithmetic(std::string_view op, Int a, Int b) {
  Int result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    if (b < 0) {
      if (a == 0) fail("division by zero");
      return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
    result = integer_power(a, b);
  } else {
    if (b == 0) fail("division by zero");
    if (op == "/") return Value(static_cast<double>(a) / static_cast<double>(b));
    if (b == -1) {  // the lowest integer has no opposite
      if (op == "//") overflow = __builtin_sub_overflow(Int{0}, a, &result);
    } else {
      result = op == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
    }
  }
  if (overflow) fail("integer too large");
  return Value(result);
}

Value float_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") {
    if (a == 0 && b < 0) fail("division by zero");
    const double power = std::pow(a, b);
    if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) fail("a power without real value");
    if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail("number too large");
    return Value(power);
  }
  if (b == 0) fail("division by zero");
  if (op == "/") return Value(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == "%") return Value(remainder == 0 ? std::copysign(0.0, b) : remainder);
  const double quotient = (a - remainder) / b;
  return Value(quotient == 0 ? std::copysign(0.0, a / b) : std::round(quotient));
}

/// text * count and list * count.
Value repeated(Budget& budget, const Value& value, const Value& times) {
  const int64_t count = std::max<int64_t>(0, to_int64(times));
  if (value.is_string()) {
    const std::string& text = value.string();
    if (text.empty() || count == 0) return like(budget, value, "");
    if (static_cast<uint64_t>(count) > Budget::kMaxBytes) fail("a string too large");
    budget.bytes(static_cast<uint64_t>(count) * text.size());
    std::string whole;
    whole.reserve(static_cast<size_t>(count) * text.size());
    for (int64_t i = 0; i < count; ++i) whole += text;
    return value.is_markup() ? Value::markup(std::move(whole)) : Value::string(std::move(whole));
  }
  const auto sequence = value.as<Sequence>();
  std::vector<Value> items;
  if (!sequence->items.empty()) {
    if (static_cast<uint64_t>(count) > Budget::kMaxBytes) fail("a list too large");
    budget.bytes(static_cast<uint64_t>(count) * sequence->items.size() * sizeof(Value));
    for (int64_t i = 0; i < count; ++i) {
      items.insert(items.end(), sequence->items.begin(), sequence->items.end());
    }
  }
  return make_sequence(budget, sequence->kind, std::move(items));
}

bool is_list_or_tuple(const Value& value) {
  return value.is(ObjectKind::kList) || value.is(ObjectKind::kTuple);
}

/// What a marked format inserts: all but numbers as escaped text.
Value escaped_values(Budget& budget, const Value& values) {
  if (values.is(ObjectKind::kTuple)) {
    std::vector<Value> items;
    for (const Value& item : elements(budget, values)) {
      items.push_back(item.is_number() ? item : escaped(budget, item));
    }
    return make_sequence(budget, ObjectKind::kTuple, std::move(items));
  }
  if (!values.is(ObjectKind::kDict)) return values.is_number() ? values : escaped(budget, values);
  Entries entries;
  for (const auto& [key, value] : values.as<Mapping>()->entries) {
    entries.emplace_back(key, value.is_number() ? value : escaped(budget, value));
  }
  return make_dict(budget, std::move(entries));
}

}  // namespace

Value binary(Budget& budget, std::string_view op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return integer_arithmetic(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return float_arithmetic(op, a.number(), b.number());
  if (op == "+" && a.is_string() && b.is_string()) {
    if (a.is_markup() || b.is_markup()) {
      const Value left = escaped(budget, a);
      return like(budget, left, left.string() + escaped(budget, b).string());
    }
    budget.bytes(a.string().size() + b.string().size());
    return Value::string(a.string() + b.string());
  }
  if (op == "+" && is_list_or_tuple(a) && b.is(a.object()->kind)) {
    std::vector<Value> items = elements(budget, a);
    const auto more = b.as<Sequence>();
    items.insert(items.end(), more->items.begin(), more->items.end());
    return make_sequence(budget, a.object()->kind, std::move(items));
  }
  if (op == "*") {
    if ((a.is_string() || is_list_or_tuple(a)) && b.is_integer()) return repeated(budget, a, b);
    if ((b.is_string() || is_list_or_tuple(b)) && a.is_integer()) return repeated(budget, b, a);
  }
  if (op == "%" && a.is_string()) {
    if (a.is_markup()) {
      return Value::markup(percent_format(budget, a.string(), escaped_values(budget, b)));
    }
    return Value::string(percent_format(budget, a.string(), b));
  }
  fail_types(op, a, b);
}

Value negative(const Value& value) {
  if (value.is_integer()) return integer_arithmetic("-", 0, value.integer());
  if (value.is_float()) return Value(-value.number());
  if (value.is_undefined()) fail("{}", value.why_undefined());
  fail("'{}' has no sign", value.type_name());
}

}  // namespace orthrus::jinja
