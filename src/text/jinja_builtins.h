#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace orthrus::jinja {

using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, const Arguments&);

/// Null where there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
/// The functions every template sees (range, namespace, raise_exception, ...); null where none.
const Value* find_global(std::string_view name);

using Method = Value (*)(Interpreter&, const Value& self, const Arguments&);
struct NamedMethod {
  std::string_view name;
  Method method;
};
std::span<const NamedMethod> string_methods();
/// A method of a string, list, tuple or dict, bound to `self`; undefined where the sandbox forbids
/// it (what changes its object). Null where the type has no such attribute.
std::optional<Value> find_method(Budget& budget, const Value& self, std::string_view name);
/// The value of loop.<name>.
std::optional<Value> loop_attribute(Budget& budget, const Value& loop, std::string_view name);

std::optional<Value> cycler_attribute(const Value& cycler, std::string_view name);

/// Filters by file.
Filter find_text_filter(std::string_view name);
Filter find_layout_filter(std::string_view name);
Filter find_html_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_select_filter(std::string_view name);
Filter find_number_filter(std::string_view name);

/// Arguments matched with parameters as Python does it.
class Bound {
 public:
  /// Error(kInput) for too many, unknown, doubled arguments, and missing ones of the first
  /// `required`.
  Bound(std::string_view function, const Arguments& arguments,
        std::initializer_list<std::string_view> parameters, size_t required = 0);

  bool has(size_t index) const { return values_[index] != nullptr; }
  const Value& operator[](size_t index) const { return *values_[index]; }
  /// Error(kInput) where the argument is given and is not of that type.
  int64_t integer(size_t index, int64_t otherwise) const;
  bool truth(size_t index, bool otherwise) const;
  const std::string& string(size_t index) const;
  /// Absent where not given or none.
  std::optional<std::string_view> optional_string(size_t index) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

/// An int64 of an integer, clamped to its range; Error(kInput) for another type.
int64_t to_int64(const Value& value);

/// `format % values`, of `pattern.format(arguments)`.
std::string percent_format(Budget& budget, std::string_view format, const Value& values);
std::string brace_format(Interpreter& interpreter, std::string_view format,
                         const Arguments& arguments);

/// Arithmetic of + - * / // % **, by Python's rules.
Value binary(Budget& budget, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& value);

}  // namespace orthrus::jinja
