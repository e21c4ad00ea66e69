#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

/// What "..." % values and "...".format(values) share.
namespace orthrus::jinja {

struct FormatSpec {
  static constexpr int64_t kMaxWidth = 1000;

  std::string fill = " ";
  char align = 0;  // < > ^ = or 0 for the type's own
  char sign = '-';
  bool zero = false;
  bool alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;  // -1: the type's own
  int64_t digits = 0;      // an integer's least number of them
  char type = 0;
};

/// The digits at text[at], passed over; 0 where there are none. Error(kInput) over kMaxWidth.
int64_t read_width(std::string_view text, size_t& at);

std::string format_number(const Value& value, const FormatSpec& spec);
std::string format_text(std::string_view text, const FormatSpec& spec);
/// The character of a code point, for the type c.
std::string format_character(const Value& value, const FormatSpec& spec);

}  // namespace orthrus::jinja
