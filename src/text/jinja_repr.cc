// How values print: Python's str() and repr().
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "text/jinja_string.h"
#include "text/jinja_value.h"

namespace orthrus::jinja {

std::string int_repr(Int value) { return fmt::format("{}", value); }

/// Python writes the shortest digits that read back equal; with an exponent below 1e-4 and from
/// 1e16 on.
std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  text.assign(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

namespace {

std::string code_escape(int32_t c) {
  return c < 0x100     ? fmt::format("\\x{:02x}", c)
         : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                       : fmt::format("\\U{:08x}", c);
}

void append_escaped(std::string& out, std::string_view character, char quote) {
  const int32_t c = decode_character(character);
  if (c == quote || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    out += character;
  } else {
    out += code_escape(c);
  }
}

void append_repr(Budget& budget, std::string& out, const Value& value, int depth);

void append_items(Budget& budget, std::string& out, const std::vector<Value>& items, int depth) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out += ", ";
    first = false;
    append_repr(budget, out, item, depth);
  }
}

void append_entries(Budget& budget, std::string& out, const Entries& entries, int depth) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(budget, out, key, depth);
    out += ": ";
    append_repr(budget, out, value, depth);
  }
  out += '}';
}

void append_object(Budget& budget, std::string& out, const Value& value, int depth) {
  const auto list = [&](std::string_view open, std::string_view close) {
    out += open;
    append_items(budget, out, value.as<Sequence>()->items, depth);
    out += close;
  };
  switch (value.object()->kind) {
    case ObjectKind::kList:
      return list("[", "]");
    case ObjectKind::kTuple:
      return list("(", value.as<Sequence>()->items.size() == 1 ? ",)" : ")");
    case ObjectKind::kKeys:
    case ObjectKind::kValues:
    case ObjectKind::kItems:
      out += value.type_name();
      return list("([", "])");
    case ObjectKind::kDict:
      return append_entries(budget, out, value.as<Mapping>()->entries, depth);
    case ObjectKind::kNamespace:
      out += "<Namespace ";
      append_entries(budget, out, value.as<Mapping>()->entries, depth);
      out += '>';
      return;
    case ObjectKind::kRange: {
      const auto range = value.as<Range>();
      out += "range(" + int_repr(range->start) + ", " + int_repr(range->stop);
      if (range->step != 1) out += ", " + int_repr(range->step);
      out += ')';
      return;
    }
    default:  // Python prints an address here: nothing that a template can mean
      out += fmt::format("<{} object>", value.type_name());
  }
}

void append_repr(Budget& budget, std::string& out, const Value& value, int depth) {
  budget.step();
  if (depth > Budget::kMaxDepth) fail("values nest deeper than {}", Budget::kMaxDepth);
  const size_t before = out.size();
  if (value.is_none()) {
    out += "None";
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_bool()) {
    out += value.truth() ? "True" : "False";
  } else if (value.is_integer()) {
    out += int_repr(value.integer());
  } else if (value.is_float()) {
    out += float_repr(value.number());
  } else if (value.is_string()) {
    out += value.is_markup() ? "Markup(" + quoted(value.string()) + ")" : quoted(value.string());
  } else {
    append_object(budget, out, value, depth + 1);
    return;  // the parts are counted
  }
  budget.bytes(out.size() - before);
}

}  // namespace

std::string quoted(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::string_view character : characters(text)) append_escaped(out, character, quote);
  return out + quote;
}

std::string ascii_only(std::string_view repr) {
  std::string out;
  for (std::string_view character : characters(repr)) {
    character.size() == 1 ? out += character : out += code_escape(decode_character(character));
  }
  return out;
}

std::string to_repr(Budget& budget, const Value& value) {
  std::string out;
  append_repr(budget, out, value, 0);
  return out;
}

std::string to_string(Budget& budget, const Value& value) {
  if (value.is_undefined()) return "";
  if (value.is_string()) {
    budget.bytes(value.string().size());
    return value.string();
  }
  return to_repr(budget, value);
}

namespace {

/// Reads up to `most` digits of `base` at text[at].
std::optional<uint32_t> read_digits(std::string_view text, size_t& at, size_t most, int base) {
  uint32_t number = 0;
  const size_t available = std::min(most, text.size() - at);
  const auto end = std::from_chars(text.data() + at, text.data() + at + available, number, base);
  if (end.ec != std::errc()) return std::nullopt;
  const size_t taken = static_cast<size_t>(end.ptr - text.data()) - at;
  at += taken;
  if (base == 16 && taken != most) return std::nullopt;
  return number;
}

bool append_code_point(std::string& out, std::optional<uint32_t> code_point) {
  if (!code_point || *code_point > 0x10ffff) return false;
  if (*code_point >= 0xd800 && *code_point < 0xe000) return false;
  append_utf8(out, *code_point);
  return true;
}

}  // namespace

std::optional<std::string> unescape(std::string_view text) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\' || at == text.size()) {
      out += c;
      continue;
    }
    const char escape = text[at];
    const size_t name = kNames.find(escape);
    if (name != std::string_view::npos) {
      out += kMeanings[name];
      ++at;
    } else if (escape == '\n') {
      ++at;
    } else if (escape >= '0' && escape <= '7') {
      if (!append_code_point(out, read_digits(text, at, 3, 8))) return std::nullopt;
    } else if (escape == 'x' || escape == 'u' || escape == 'U') {
      ++at;
      const size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
      if (!append_code_point(out, read_digits(text, at, digits, 16))) return std::nullopt;
    } else if (escape == 'N') {
      return std::nullopt;  // characters by their Unicode name
    } else {
      out += c;  // an unknown escape stays as it is
    }
  }
  return out;
}

}  // namespace orthrus::jinja
