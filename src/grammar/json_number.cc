#include "grammar/json_number.h"

#include <algorithm>
#include <charconv>

namespace orthrus::grammar {
namespace {

constexpr size_t kMaxDigits = 40;

int compare_magnitude(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int order = a.whole.compare(b.whole)) return order;
  return a.fraction.compare(b.fraction);
}

}  // namespace

std::optional<Decimal> parse_decimal(const std::string& text) {
  Decimal out;
  const size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  int exponent = 0;
  if (exponent_at < text.size()) {
    const char* begin = text.data() + exponent_at + 1;
    if (*begin == '+') ++begin;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), exponent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  std::string digits = text.substr(0, exponent_at);
  out.negative = digits.starts_with('-');
  if (out.negative) digits.erase(0, 1);
  const size_t point = std::min(digits.find('.'), digits.size());
  if (point < digits.size()) digits.erase(point, 1);
  constexpr int kFar = 400;  // further than any double's digits
  if (exponent < -kFar || exponent > kFar) return std::nullopt;
  const int64_t at = static_cast<int64_t>(point) + exponent;
  if (at < 1) digits.insert(0, static_cast<size_t>(1 - at), '0');
  const auto whole = static_cast<size_t>(std::max<int64_t>(at, 1));
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  out.whole = digits.substr(0, whole);
  out.fraction = digits.substr(whole);
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size() - 1));
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  if (out.whole.size() > kMaxDigits || out.fraction.size() > kMaxDigits) return std::nullopt;
  if (out.is_zero()) out.negative = false;
  return out;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

}  // namespace orthrus::grammar
