// "..." % values and "...".format(values).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

constexpr int64_t kMaxWidth = 1000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ = or 0 for the type's own
  char sign = '-';
  bool zero = false;
  bool alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t read_number(std::string_view text, size_t& at) {
  int64_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > kMaxWidth) fail("a format with a width over {}", kMaxWidth);
  }
  return number;
}

std::string grouped(std::string digits, char separator) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
  return digits;
}

std::string in_base(Int number, unsigned base) {
  std::string digits;
  do {
    digits += "0123456789abcdef"[static_cast<size_t>(number % base)];
    number /= base;
  } while (number > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

/// The digits of |number| in the spec's type.
std::string magnitude(const Value& value, const Spec& spec) {
  const bool real =
      value.is_float() || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (!real) {
    const Int number = value.integer() < 0 ? -value.integer() : value.integer();
    const std::string prefix = spec.alternate ? std::string("0") + spec.type : "";
    if (spec.type == 'x') return prefix + in_base(number, 16);
    if (spec.type == 'X') return prefix + upper(in_base(number, 16));
    if (spec.type == 'o') return prefix + in_base(number, 8);
    if (spec.type == 'b') return prefix + in_base(number, 2);
    return in_base(number, 10);
  }
  const double number = std::abs(value.number());
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  switch (spec.type) {
    case 'e':
      return fmt::format("{:.{}e}", number, precision);
    case 'E':
      return fmt::format("{:.{}E}", number, precision);
    case 'f':
    case 'F':
      return fmt::format("{:.{}f}", number, precision);
    case 'g':
      return fmt::format("{:.{}g}", number, precision);
    case 'G':
      return fmt::format("{:.{}G}", number, precision);
    case '%':
      return fmt::format("{:.{}f}%", number * 100, precision);
    default:
      return spec.precision < 0 ? float_repr(number) : fmt::format("{:.{}g}", number, precision);
  }
}

std::string padded(std::string sign, std::string body, const Spec& spec, char align) {
  const auto size = static_cast<int64_t>(count_characters(sign) + count_characters(body));
  const int64_t missing = std::max<int64_t>(0, spec.width - size);
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before;
  std::string after;
  for (int64_t i = 0; i < left; ++i) before += spec.fill;
  for (int64_t i = left; i < missing; ++i) after += spec.fill;
  return align == '=' ? sign + before + body : before + sign + body + after;
}

std::string format_number(const Value& value, const Spec& spec) {
  const bool minus = value.is_float() ? std::signbit(value.number()) : value.integer() < 0;
  const std::string sign = minus ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  std::string body = magnitude(value, spec);
  if (spec.grouping != 0) body = grouped(std::move(body), spec.grouping);
  return padded(sign, std::move(body), spec, spec.align != 0 ? spec.align : spec.zero ? '=' : '>');
}

std::string format_text(std::string_view text, const Spec& spec) {
  std::string shown(text);
  if (spec.precision >= 0) {
    shown.clear();
    int64_t left = spec.precision;
    for (std::string_view character : characters(text)) {
      if (left-- == 0) break;
      shown += character;
    }
  }
  return padded("", std::move(shown), spec, spec.align != 0 ? spec.align : '<');
}

Spec parse_spec(std::string_view text) {
  static constexpr std::string_view kAligns = "<>^=";
  Spec spec;
  size_t at = 0;
  const auto next = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto is_align = [&](size_t i) {
    return i < text.size() && kAligns.find(text[i]) != std::string_view::npos;
  };
  const auto all = characters(text.substr(0, 8));
  if (!all.empty() && is_align(all[0].size())) {
    spec.fill = all[0];
    spec.align = text[all[0].size()];
    at = all[0].size() + 1;
  } else if (is_align(0)) {
    spec.align = text[at++];
  }
  if (next() == '+' || next() == '-' || next() == ' ') spec.sign = text[at++];
  if (next() == '#') spec.alternate = text[at++] == '#';
  if (next() == '0') {
    spec.zero = text[at++] == '0';
    if (spec.align == 0) spec.fill = "0";
  }
  spec.width = read_number(text, at);
  if (next() == ',' || next() == '_') spec.grouping = text[at++];
  if (next() == '.') spec.precision = read_number(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  static constexpr std::string_view kTypes = "sdnxXobeEfFgG%";
  if (at != text.size() || (spec.type != 0 && kTypes.find(spec.type) == std::string_view::npos)) {
    fail("unknown format '{}'", text);
  }
  return spec;
}

std::string format_value(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return to_string(budget, value);
  const Spec spec = parse_spec(text);
  budget.bytes(static_cast<uint64_t>(spec.width) * spec.fill.size());
  if (value.is_number() && spec.type != 's') {
    const bool whole = std::string_view("dnxXob").find(spec.type) != std::string_view::npos;
    if (value.is_float() && spec.type != 0 && whole) fail("format '{}' takes an integer", text);
    return format_number(value, spec);
  }
  if (!value.is_string()) fail("format '{}' does not fit '{}'", text, value.type_name());
  if (spec.type != 's' && spec.type != 0) fail("format '{}' does not fit a string", text);
  return format_text(value.string(), spec);
}

/// One conversion of a % format, after its "%" and key.
std::string percent_one(Budget& budget, const Value& value, const Spec& spec) {
  budget.bytes(static_cast<uint64_t>(spec.width));
  if (spec.type == 's' || spec.type == 'r') {
    const std::string text = spec.type == 's' ? to_string(budget, value) : to_repr(budget, value);
    Spec right = spec;
    if (right.align == 0) right.align = '>';
    right.fill = " ";
    return format_text(text, right);
  }
  if (!value.is_number()) fail("%{} needs a number, given '{}'", spec.type, value.type_name());
  Spec number = spec;
  const bool whole = std::string_view("diuxXo").find(spec.type) != std::string_view::npos;
  if (whole && value.is_float() && (spec.type == 'x' || spec.type == 'X' || spec.type == 'o')) {
    fail("%{} needs an integer", spec.type);
  }
  if (!whole) return format_number(value, number);
  if (std::string_view("diu").find(spec.type) != std::string_view::npos) number.type = 'd';
  if (!value.is_float()) return format_number(value, number);
  if (!(std::abs(value.number()) < 0x1p126)) fail("integer too large");
  return format_number(Value(static_cast<Int>(value.number())), number);
}

}  // namespace

std::string percent_format(Budget& budget, std::string_view format, const Value& values) {
  const bool is_tuple = values.is(ObjectKind::kTuple);
  const std::vector<Value> items = is_tuple ? elements(budget, values) : std::vector<Value>{values};
  size_t used = 0;
  const auto next_value = [&]() -> const Value& {
    if (used >= items.size()) fail("not enough arguments for format string");
    return items[used++];
  };
  std::string out;
  bool by_key = false;
  for (size_t at = 0; at < format.size();) {
    const size_t percent = std::min(format.find('%', at), format.size());
    out += format.substr(at, percent - at);
    at = percent + 1;
    if (percent == format.size()) break;
    std::optional<Value> named;
    if (at < format.size() && format[at] == '(') {
      const size_t close = format.find(')', at);
      if (close == std::string_view::npos || !values.is(ObjectKind::kDict)) {
        fail("a format with names needs a mapping");
      }
      const std::string key(format.substr(at + 1, close - at - 1));
      const Value* found = values.as<Mapping>()->find(key);
      if (found == nullptr) fail("format: no value named '{}'", key);
      named = *found;
      by_key = true;
      at = close + 1;
    }
    Spec spec;
    for (;
         at < format.size() && std::string_view("-+ 0#").find(format[at]) != std::string_view::npos;
         ++at) {
      if (format[at] == '-') spec.align = '<';
      if (format[at] == '+' || (format[at] == ' ' && spec.sign != '+')) spec.sign = format[at];
      if (format[at] == '0') spec.zero = true;
      if (format[at] == '#') spec.alternate = true;
    }
    if (spec.zero && spec.align == 0) spec.fill = "0";
    spec.width = read_number(format, at);
    if (at < format.size() && format[at] == '.') spec.precision = read_number(format, ++at);
    if (at == format.size()) fail("incomplete format");
    spec.type = format[at++];
    if (spec.type == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("srdiuxXoeEfFgG").find(spec.type) == std::string_view::npos) {
      fail("unknown format '%{}'", spec.type);
    }
    out += percent_one(budget, named ? *named : next_value(), spec);
  }
  if (used < items.size() && !by_key && !(values.is(ObjectKind::kDict) && used == 0)) {
    fail("not all arguments converted during string formatting");
  }
  budget.bytes(out.size());
  return out;
}

namespace {

/// The value that a replacement field's name ("0", "name", "0.key[1]", "") stands for.
Value field_value(Interpreter& in, std::string_view field, const Arguments& arguments,
                  size_t& automatic) {
  size_t at = std::min(field.find_first_of(".["), field.size());
  const std::string first(field.substr(0, at));
  Value value;
  if (first.empty() || all_are(first, CharacterClass::kDecimal)) {
    size_t digits = 0;
    const size_t index =
        first.empty() ? automatic++ : static_cast<size_t>(read_number(first, digits));
    if (index >= arguments.positional.size()) fail("format(): no argument {}", index);
    value = arguments.positional[index];
  } else {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& entry) { return entry.first == first; });
    if (found == arguments.named.end()) fail("format(): no argument '{}'", first);
    value = found->second;
  }
  while (at < field.size()) {
    const bool attribute = field[at] == '.';
    const size_t end =
        attribute ? std::min(field.find_first_of(".[", at + 1), field.size()) : field.find(']', at);
    if (end == std::string_view::npos) fail("format(): missing ']'");
    const std::string part(field.substr(at + 1, end - at - 1));
    size_t digits = 0;
    const bool number = !attribute && all_are(part, CharacterClass::kDecimal);
    value = attribute ? in.attribute(value, part)
                      : in.item(value, number ? Value::integer(read_number(part, digits))
                                              : Value::string(part));
    at = attribute ? end : end + 1;
  }
  return value;
}

}  // namespace

std::string brace_format(Interpreter& in, std::string_view format, const Arguments& arguments) {
  std::string out;
  size_t automatic = 0;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at < format.size() && format[at] == c) {
      out += c;
      ++at;
      continue;
    }
    const size_t close = format.find('}', at);
    if (c == '}' || close == std::string_view::npos) fail("format(): a single '{}'", c);
    std::string_view field = format.substr(at, close - at);
    at = close + 1;
    if (field.find('{') != std::string_view::npos)
      fail("format(): nested fields are not supported");
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = field.substr(std::min(colon + 1, field.size()));
    field = field.substr(0, colon);
    const size_t mark = field.find('!');
    const std::string_view conversion =
        mark == std::string_view::npos ? "" : field.substr(mark + 1);
    Value value = field_value(in, field.substr(0, mark), arguments, automatic);
    if (conversion == "r") {
      value = Value::string(to_repr(in.budget(), value));
    } else if (conversion == "s") {
      value = Value::string(in.text(value));
    } else if (mark != std::string_view::npos) {
      fail("format(): unknown conversion '!{}'", conversion);
    }
    out += format_value(in.budget(), value, spec);
  }
  in.budget().bytes(out.size());
  return out;
}

}  // namespace orthrus::jinja
