// Filters on numbers, and the filters' names.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

/// Text without the underscores that Python allows between digits; absent where one stands wrong.
std::optional<std::string> without_underscores(std::string_view text) {
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

/// Python's int(text, base); absent where it is none.
std::optional<Int> parse_integer(std::string_view text, int base) {
  text = strip(text, std::nullopt, kBoth);
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && lower(text.substr(0, 2)) == prefix) {
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  }
  const auto digits = without_underscores(lower(text));
  if (!digits || digits->empty()) return std::nullopt;
  Int number = 0;
  for (const char c : *digits) {
    const size_t digit = std::string_view("0123456789abcdefghijklmnopqrstuvwxyz").find(c);
    if (digit >= static_cast<size_t>(base)) return std::nullopt;
    if (__builtin_mul_overflow(number, Int{base}, &number) ||
        __builtin_add_overflow(number, static_cast<Int>(digit), &number)) {
      fail("integer too large");
    }
  }
  return minus ? -number : number;
}

/// Python's float(text).
std::optional<double> parse_float(std::string_view text) {
  const auto digits = without_underscores(lower(strip(text, std::nullopt, kBoth)));
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  const bool minus = rest.starts_with('-');
  if (minus || rest.starts_with('+')) rest.remove_prefix(1);
  double number = 0;
  const char* end = rest.data() + rest.size();
  const bool starts_well = !rest.empty() && rest[0] != '-' && !rest.starts_with("nan(");
  const auto read = std::from_chars(rest.data(), end, number);
  if (!starts_well || read.ptr != end || read.ec == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (read.ec == std::errc::result_out_of_range) {
    number = rest.find("e-") != std::string_view::npos ? 0.0 : HUGE_VAL;
  }
  return minus ? -number : number;
}

std::optional<Int> truncated(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) >= 0x1p126) fail("integer too large");
  return static_cast<Int>(number);
}

Value int_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  if (input.is_undefined()) fail("{}", input.why_undefined());
  std::optional<Int> number;
  if (input.is_integer()) {
    number = input.integer();
  } else if (input.is_float()) {
    if (std::isinf(input.number())) fail("int: the number is infinite");
    number = truncated(input.number());
  } else if (input.is_string()) {
    const int64_t base = bound.integer(1, 10);
    if (base < 2 || base > 36) fail("int: base {} is not within 2 to 36", base);
    number = parse_integer(input.string(), static_cast<int>(base));
    if (!number) {
      const auto real = parse_float(input.string());
      if (real) number = truncated(*real);
    }
  }
  if (number) return Value(*number);
  return bound.has(0) ? bound[0] : Value::integer(0);
}

Value float_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  if (input.is_undefined()) fail("{}", input.why_undefined());
  if (input.is_number()) return Value(input.number());
  const auto number = input.is_string() ? parse_float(input.string()) : std::nullopt;
  return number ? Value(*number) : bound.has(0) ? bound[0] : Value(0.0);
}

Value abs_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("abs", arguments, {});
  if (!input.is_number()) fail("abs: '{}' is not a number", input.type_name());
  if (input.is_float()) return Value(std::abs(input.number()));
  return input.integer() < 0 ? negative(input) : Value(input.integer());
}

/// Half to even of the exact binary value, as Python rounds.
double round_to(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  if (digits < -300) return std::copysign(0.0, number);
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / scale) * scale;
  }
  const std::string text = fmt::format("{:.{}f}", number, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

Value round_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const int64_t digits = bound.integer(0, 0);
  const std::string method = bound.has(1) ? bound.string(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round: the method must be common, ceil or floor");
  }
  if (!input.is_number()) fail("round: '{}' is not a number", input.type_name());
  if (method == "common") {
    if (input.is_float()) return Value(round_to(input.number(), digits));
    if (digits >= 0) return Value(input.integer());
    return Value(static_cast<Int>(round_to(input.number(), digits)));
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.number() * scale;
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value((whole + 0.0) / scale);  // an int to Python, so never -0.0
}

/// 1 Byte, 13 Bytes, 4.1 kB, 102.4 MiB.
Value filesizeformat(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("filesizeformat", arguments, {"binary"});
  const bool binary = bound.truth(0, false);
  const auto number = input.is_number()   ? std::optional(input.number())
                      : input.is_string() ? parse_float(input.string())
                                          : std::nullopt;
  if (!number) fail("filesizeformat: '{}' is not a number", input.type_name());
  const double base = binary ? 1024 : 1000;
  if (*number == 1) return Value::string("1 Byte");
  if (*number < base) {
    const auto whole = truncated(*number);
    if (!whole) fail("filesizeformat: not a finite number");
    return in.string(int_repr(*whole) + " Bytes");
  }
  if (std::isnan(*number)) return Value::string(binary ? "nan YiB" : "nan YB");
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base * base;
  size_t at = 0;
  for (; at + 1 < kPrefixes.size() && *number >= unit; ++at) unit *= base;
  const char prefix = binary && at == 0 ? 'K' : kPrefixes[at];
  return in.string(fmt::format("{:.1f} {}{}", base * *number / unit, prefix, binary ? "iB" : "B"));
}

}  // namespace

Filter find_number_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"int", int_filter},
      {"float", float_filter},
      {"abs", abs_filter},
      {"round", round_filter},
      {"filesizeformat", filesizeformat},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

Filter find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_layout_filter, find_html_filter,
                          find_sequence_filter, find_select_filter, find_number_filter}) {
    if (const Filter filter = find(name)) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
