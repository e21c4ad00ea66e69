// "...".format(values).
#include <algorithm>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  const auto next = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto is_align = [&](size_t i) { return i < text.size() && is_one_of(text[i], "<>^="); };
  const size_t first = character_offset(text, 1);
  if (first > 0 && is_align(first)) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (is_align(0)) {
    spec.align = text[at++];
  }
  if (next() == '+' || next() == '-' || next() == ' ') spec.sign = text[at++];
  if (next() == '#') spec.alternate = text[at++] == '#';
  if (next() == '0') {
    spec.zero = text[at++] == '0';
    if (spec.fill == " " && at < 2) spec.fill = "0";
    if (spec.align == 0) spec.fill = "0";
  }
  spec.width = read_width(text, at);
  if (next() == ',' || next() == '_') spec.grouping = text[at++];
  if (next() == '.') {
    const size_t digits = ++at;
    spec.precision = read_width(text, at);
    if (at == digits) fail("format '{}' lacks a precision", text);
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size() || (spec.type != 0 && !is_one_of(spec.type, "sdcnxXobeEfFgG%"))) {
    fail("unknown format '{}'", text);
  }
  return spec;
}

std::string format_value(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return to_string(budget, value);
  const FormatSpec spec = parse_spec(text);
  budget.bytes(static_cast<uint64_t>(spec.width) * spec.fill.size());
  const bool signs = text.find('+') != text.npos || text.find('-') != text.npos;
  if (value.is_number() && spec.type != 's') {
    const bool whole = spec.type != 0 && is_one_of(spec.type, "dcxXob");
    const bool real = value.is_float() || (spec.type != 0 && is_one_of(spec.type, "eEfFgG%"));
    if (value.is_float() && whole) fail("format '{}' takes an integer", text);
    if (!real && spec.precision >= 0) fail("format '{}': an integer has no precision", text);
    const bool groups = spec.type != 'n' && spec.type != 'c' &&
                        (spec.grouping != ',' || !whole || spec.type == 'd');
    if (spec.grouping != 0 && !groups) fail("format '{}' has no groups of digits", text);
    return spec.type == 'c' ? format_character(value, spec) : format_number(value, spec);
  }
  if (!value.is_string()) fail("format '{}' does not fit '{}'", text, value.type_name());
  const bool fits = (spec.type == 's' || spec.type == 0) && spec.grouping == 0 &&
                    spec.align != '=' && !spec.alternate && (spec.sign == '-' && !signs);
  if (!fits) fail("format '{}' does not fit a string", text);
  return format_text(value.string(), spec);
}

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& in, const Arguments& arguments) : in_(in), arguments_(arguments) {}

  /// Fields may stand in the formats of others, but go no deeper.
  std::string run(std::string_view format, int level) {
    if (level > 3) fail("format(): fields nest too deep");
    std::string out;
    for (size_t at = 0; at < format.size();) {
      const char c = format[at++];
      const bool doubled = at < format.size() && format[at] == c;
      if ((c != '{' && c != '}') || doubled) {
        out += c;
        at += (c == '{' || c == '}') && doubled;
        continue;
      }
      const size_t close = c == '{' ? end_of_field(format, at) : std::string_view::npos;
      if (close == std::string_view::npos) fail("format(): a single '{}'", c);
      out += field(format.substr(at, close - at), level);
      at = close + 1;
    }
    in_.budget().bytes(out.size());
    return out;
  }

 private:
  /// The brace that closes the field whose inside begins at `at`.
  static size_t end_of_field(std::string_view format, size_t at) {
    for (int open = 1; at < format.size(); ++at) {
      open += format[at] == '{' ? 1 : format[at] == '}' ? -1 : 0;
      if (open == 0) return at;
    }
    return std::string_view::npos;
  }

  std::string field(std::string_view text, int level) {
    const size_t colon = std::min(text.find(':'), text.size());
    const std::string spec = run(text.substr(std::min(colon + 1, text.size())), level + 1);
    text = text.substr(0, colon);
    const size_t mark = std::min(text.find('!'), text.size());
    const std::string_view conversion = text.substr(std::min(mark + 1, text.size()));
    Value value = field_value(text.substr(0, mark));
    if (conversion == "r") {
      value = Value::string(to_repr(in_.budget(), value));
    } else if (conversion == "a") {
      value = Value::string(ascii_only(to_repr(in_.budget(), value)));
    } else if (conversion == "s") {
      value = Value::string(in_.text(value));
    } else if (mark < text.size()) {
      fail("format(): unknown conversion '!{}'", conversion);
    }
    return format_value(in_.budget(), value, spec);
  }

  const Value& argument(const std::string& name) {
    if (!name.empty() && !all_are(name, CharacterClass::kDecimal)) {
      const auto found = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                      [&](const auto& entry) { return entry.first == name; });
      if (found == arguments_.named.end()) fail("format(): no argument '{}'", name);
      return found->second;
    }
    size_t digits = 0;
    const size_t index = name.empty() ? next_++ : static_cast<size_t>(read_width(name, digits));
    if (index >= arguments_.positional.size()) fail("format(): no argument {}", index);
    return arguments_.positional[index];
  }

  /// The value that a field's name ("0", "name", "0.key[1]", "") stands for.
  Value field_value(std::string_view name) {
    size_t at = std::min(name.find_first_of(".["), name.size());
    if (at == 0 && !name.empty()) fail("format(): the field '{}' lacks a name", name);
    numbered_ = numbered_ || (!name.empty() && all_are(name, CharacterClass::kDecimal));
    Value value = argument(std::string(name.substr(0, at)));
    if (numbered_ && next_ > 0) fail("format(): fields with and without numbers");
    while (at < name.size()) {
      const bool attribute = name[at] == '.';
      const size_t end =
          attribute ? std::min(name.find_first_of(".[", at + 1), name.size()) : name.find(']', at);
      if (end == std::string_view::npos) fail("format(): missing ']'");
      const std::string part(name.substr(at + 1, end - at - 1));
      size_t digits = 0;
      const bool number = !attribute && all_are(part, CharacterClass::kDecimal);
      value = attribute ? in_.attribute(value, part)
                        : in_.item(value, number ? Value::integer(read_width(part, digits))
                                                 : Value::string(part));
      at = attribute ? end : end + 1;
    }
    return value;
  }

  Interpreter& in_;
  const Arguments& arguments_;
  size_t next_ = 0;        // the value of the next field without a name
  bool numbered_ = false;  // a field was a number
};

}  // namespace

std::string brace_format(Interpreter& interpreter, std::string_view format,
                         const Arguments& arguments) {
  return BraceFormatter(interpreter, arguments).run(format, 1);
}

}  // namespace orthrus::jinja
