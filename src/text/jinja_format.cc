#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

int64_t read_width(std::string_view text, size_t& at) {
  int64_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > FormatSpec::kMaxWidth) {
      fail("a format with a width over {}", FormatSpec::kMaxWidth);
    }
  }
  return number;
}

namespace {

std::string grouped(std::string digits, char separator, size_t size) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  for (size_t at = whole; at > size; at -= size) digits.insert(at - size, 1, separator);
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

unsigned base_of(char type) {
  return type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
}

bool is_real(const Value& value, const FormatSpec& spec) {
  return value.is_float() || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
}

/// As g, but it shows a point or an exponent, and takes one digit less for an exponent.
std::string general_with_point(double number, int precision) {
  precision = std::max(precision, 1);
  std::string text = fmt::format("{:.{}e}", number, precision - 1);
  if (!std::isfinite(number)) return text;
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent >= -4 && exponent < precision - 1) {
    text = fmt::format("{:.{}g}", number, precision);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  std::string digits = text.substr(0, text.find('e'));
  if (digits.find('.') != std::string::npos) {
    digits.resize(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return digits + text.substr(text.find('e'));
}

std::string real_magnitude(double number, const FormatSpec& spec) {
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  const auto print = [&](const char* plain, const char* alternate) {
    return fmt::format(fmt::runtime(spec.alternate ? alternate : plain), number, precision);
  };
  switch (spec.type) {
    case 'e':
      return print("{:.{}e}", "{:#.{}e}");
    case 'E':
      return print("{:.{}E}", "{:#.{}E}");
    case 'f':
      return print("{:.{}f}", "{:#.{}f}");
    case 'F':
      return print("{:.{}F}", "{:#.{}F}");
    case 'g':
    case 'n':
      return print("{:.{}g}", "{:#.{}g}");
    case 'G':
      return print("{:.{}G}", "{:#.{}G}");
    case '%':
      number *= 100;
      return print("{:.{}f}%", "{:#.{}f}%");
    default:
      return spec.precision < 0 ? float_repr(number) : general_with_point(number, precision);
  }
}

std::string padded(const std::string& before, const std::string& body, const FormatSpec& spec,
                   char align) {
  const auto size = static_cast<int64_t>(count_characters(before) + count_characters(body));
  const int64_t missing = std::max<int64_t>(0, spec.width - size);
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string at_left;
  std::string at_right;
  for (int64_t i = 0; i < left; ++i) at_left += spec.fill;
  for (int64_t i = left; i < missing; ++i) at_right += spec.fill;
  return align == '=' ? before + at_left + body : at_left + before + body + at_right;
}

}  // namespace

std::string format_number(const Value& value, const FormatSpec& spec) {
  const bool minus = value.is_float() ? std::signbit(value.number()) && !std::isnan(value.number())
                                      : value.integer() < 0;
  std::string before = minus ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  std::string body;
  if (is_real(value, spec)) {
    body = real_magnitude(std::abs(value.number()), spec);
  } else {
    const unsigned base = base_of(spec.type);
    body = in_base(minus ? negative(value).integer() : value.integer(), base);
    if (spec.type == 'X') body = upper(body);
    const auto missing = spec.digits - static_cast<int64_t>(body.size());
    if (missing > 0) body.insert(0, static_cast<size_t>(missing), '0');
    if (spec.alternate && base != 10) before += std::string("0") + spec.type;
  }
  const char align = spec.align != 0 ? spec.align : spec.zero ? '=' : '>';
  if (spec.grouping != 0) {
    const size_t size = base_of(spec.type) == 10 ? 3 : 4;
    std::string whole = grouped(body, spec.grouping, size);
    const bool fills = align == '=' && spec.fill == "0" && body.find_first_of("in") != 0;
    while (fills && static_cast<int64_t>(before.size() + whole.size()) < spec.width) {
      body.insert(0, 1, '0');
      whole = grouped(body, spec.grouping, size);
    }
    body = std::move(whole);
  }
  return padded(before, body, spec, align);
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision >= 0) {
    text = text.substr(0, character_offset(text, static_cast<size_t>(spec.precision)));
  }
  return padded("", std::string(text), spec, spec.align != 0 ? spec.align : '<');
}

std::string format_character(const Value& value, const FormatSpec& spec) {
  const int64_t code_point = to_int64(value);
  const bool valid =
      code_point >= 0 && code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
  if (!valid) fail("format 'c': {} is no character", code_point);
  std::string text;
  append_utf8(text, static_cast<uint32_t>(code_point));
  return padded("", text, spec, spec.align != 0 ? spec.align : '>');
}

}  // namespace orthrus::jinja
