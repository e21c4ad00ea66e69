#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "grammar/expressions.h"

namespace orthrus::grammar {

/// A decimal number as it is written: no leading zero but that of "0", no trailing ones.
struct Decimal {
  bool negative = false;
  std::string whole;     ///< digits before the point, at least one
  std::string fraction;  ///< digits behind it
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

/// From JSON's notation; none where it takes more than 40 digits before or behind the point.
std::optional<Decimal> parse_decimal(const std::string& text);
/// < 0, 0, > 0: as a is less than, equal to, more than b.
int compare(const Decimal& a, const Decimal& b);

struct Bound {
  Decimal value;
  bool exclusive = false;
};

/// Integers in [min, max] that are multiples of `multiple`. `min` and `max` are more than the least
/// and less than the largest int64_t. /// None where that would take too large a grammar.
std::optional<Expressions::Expr> integers(Expressions& out, int64_t min, int64_t max,
                                          int64_t multiple);

/// Numbers without exponent, of at most 15 digits, of which at most `fraction_digits` behind the
/// point: such texts stay different, and in their order, when they are read as doubles.
Expressions::Expr decimals(Expressions& out, const std::optional<Bound>& min,
                           const std::optional<Bound>& max, size_t fraction_digits);

inline constexpr size_t kDecimalDigits = 15;

}  // namespace orthrus::grammar
