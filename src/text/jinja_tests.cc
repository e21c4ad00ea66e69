// What follows `is`.
#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

/// A test without arguments from a predicate of the value.
template <bool (*holds)(const Value&)>
bool plain(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("the test", arguments, {});
  return holds(input);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_string(const Value& value) { return value.is_string(); }
bool is_mapping(const Value& value) { return value.is(ObjectKind::kDict); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_integer(const Value& value) { return value.is_integer() && !value.is_bool(); }
bool is_float(const Value& value) { return value.is_float(); }
bool is_boolean(const Value& value) { return value.is_bool(); }
bool is_true(const Value& value) { return value.is_bool() && value.truth(); }
bool is_false(const Value& value) { return value.is_bool() && !value.truth(); }
bool is_callable(const Value& value) { return value.is_callable(); }
bool is_escaped(const Value& value) { return value.is_markup(); }

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is(ObjectKind::kLoop) ||
         (value.object() != nullptr && value.object()->kind <= ObjectKind::kDict);
}

bool is_sequence(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is(ObjectKind::kDict) ||
         value.is(ObjectKind::kList) || value.is(ObjectKind::kTuple) ||
         value.is(ObjectKind::kRange);
}

bool modulo_is(Interpreter& in, const Value& value, const Value& by, int64_t remainder) {
  return equal(in.budget(), binary(in.budget(), "%", value, by), Value::integer(remainder));
}

bool is_odd(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("odd", arguments, {});
  return modulo_is(in, input, Value::integer(2), 1);
}

bool is_even(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("even", arguments, {});
  return modulo_is(in, input, Value::integer(2), 0);
}

bool is_divisible(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("divisibleby", arguments, {"num"}, 1);
  return modulo_is(in, input, bound[0], 0);
}

template <CharacterClass what>
bool is_of_case(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("the test", arguments, {});
  return all_are(in.text(input), what);
}

bool is_equal(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("eq", arguments, {"other"}, 1);
  return equal(in.budget(), input, bound[0]);
}

bool is_unequal(Interpreter& in, const Value& input, const Arguments& arguments) {
  return !is_equal(in, input, arguments);
}

template <int wanted, bool or_equal>
bool is_ordered(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("the test", arguments, {"other"}, 1);
  const int order = compare(in.budget(), input, bound[0]);
  return order == wanted || (or_equal && order == 0);
}

bool is_in(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("in", arguments, {"seq"}, 1);
  return contains(in.budget(), input, bound[0]);
}

/// Python's identity, which for numbers and strings depends on the interpreter: equality there.
bool is_same(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("sameas", arguments, {"other"}, 1);
  if (input.object() != nullptr) return input.object() == bound[0].object();
  return input.type_name() == bound[0].type_name() && equal(in.budget(), input, bound[0]);
}

bool is_filter(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("filter", arguments, {});
  check_key(input);
  return input.is_string() && find_filter(input.string()) != nullptr;
}

bool is_test(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("test", arguments, {});
  check_key(input);
  return input.is_string() && find_test(input.string()) != nullptr;
}

}  // namespace

Test find_test(std::string_view name) {
  static constexpr std::pair<std::string_view, Test> kTests[] = {
      {"defined", plain<is_defined>},
      {"undefined", plain<is_undefined>},
      {"none", plain<is_none>},
      {"string", plain<is_string>},
      {"mapping", plain<is_mapping>},
      {"iterable", plain<is_iterable>},
      {"sequence", plain<is_sequence>},
      {"number", plain<is_number>},
      {"integer", plain<is_integer>},
      {"float", plain<is_float>},
      {"boolean", plain<is_boolean>},
      {"true", plain<is_true>},
      {"false", plain<is_false>},
      {"callable", plain<is_callable>},
      {"escaped", plain<is_escaped>},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"lower", is_of_case<CharacterClass::kLower>},
      {"upper", is_of_case<CharacterClass::kUpper>},
      {"eq", is_equal},
      {"equalto", is_equal},
      {"==", is_equal},
      {"ne", is_unequal},
      {"!=", is_unequal},
      {"lt", is_ordered<-1, false>},
      {"lessthan", is_ordered<-1, false>},
      {"<", is_ordered<-1, false>},
      {"le", is_ordered<-1, true>},
      {"<=", is_ordered<-1, true>},
      {"gt", is_ordered<1, false>},
      {"greaterthan", is_ordered<1, false>},
      {">", is_ordered<1, false>},
      {"ge", is_ordered<1, true>},
      {">=", is_ordered<1, true>},
      {"in", is_in},
      {"sameas", is_same},
      {"filter", is_filter},
      {"test", is_test},
  };
  for (const auto& [known, test] : kTests) {
    if (known == name) return test;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
