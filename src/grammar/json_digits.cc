#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "grammar/json_number.h"

namespace orthrus::grammar {
namespace {

using Expr = Expressions::Expr;

Expr digit_range(Expressions& out, int first, int last) {
  return out.chars({{static_cast<char32_t>('0' + first), static_cast<char32_t>('0' + last)}});
}

/// Numbers of as many digits as `low` and `high` have, between them, of one remainder.
class IntegerDigits {
 public:
  IntegerDigits(Expressions& out, std::string low, std::string high, int64_t multiple)
      : out_(out), low_(std::move(low)), high_(std::move(high)), multiple_(multiple) {}

  Expr run() { return rest(0, true, true, 0); }

 private:
  Expr rest(size_t position, bool at_low, bool at_high, int64_t remainder) {
    if (position == low_.size()) {
      return remainder == 0 ? out_.literal("") : out_.chars({});
    }
    if (!at_low && !at_high && multiple_ == 1) {
      const auto left = static_cast<int64_t>(low_.size() - position);
      return out_.repeat(digit_range(out_, 0, 9), left, left);
    }
    const auto [known, is_new] = known_.try_emplace({position, at_low, at_high, remainder}, 0);
    if (!is_new) return known->second;
    const int first = at_low ? low_[position] - '0' : 0;
    const int last = at_high ? high_[position] - '0' : 9;
    std::vector<Expr> parts;
    for (int digit = first; digit <= last;) {
      const bool low = at_low && digit == first, high = at_high && digit == last;
      // Digits that all lead to the same rest go together.
      int until = digit;
      if (multiple_ == 1 && !low && !high) until = at_high ? last - 1 : last;
      const Expr next = rest(position + 1, low, high, (remainder * 10 + digit) % multiple_);
      parts.push_back(out_.sequence({digit_range(out_, digit, until), next}));
      digit = until + 1;
    }
    return known_[{position, at_low, at_high, remainder}] = out_.choice(std::move(parts));
  }

  Expressions& out_;
  const std::string low_, high_;
  const int64_t multiple_;
  std::map<std::tuple<size_t, bool, bool, int64_t>, Expr> known_;
};

/// Positive multiples and, with min = 0, zero.
Expr magnitudes(Expressions& out, int64_t min, int64_t max, int64_t multiple) {
  std::vector<Expr> parts;
  if (max < min) return out.chars({});
  const size_t shortest = std::to_string(min).size(), longest = std::to_string(max).size();
  for (size_t length = shortest; length <= longest; ++length) {
    const std::string low =
        length == shortest ? std::to_string(min) : "1" + std::string(length - 1, '0');
    const std::string high = length == longest ? std::to_string(max) : std::string(length, '9');
    parts.push_back(IntegerDigits(out, low, high, multiple).run());
  }
  return out.choice(std::move(parts));
}

/// Decimals of one number of digits before the point.
class DecimalDigits {
 public:
  /// Magnitudes; `whole` digits before the point and at most `fraction` behind it.
  DecimalDigits(Expressions& out, const Bound& min, const std::optional<Bound>& max, size_t whole,
                size_t fraction)
      : out_(out), min_(min), max_(max), whole_(whole), fraction_(fraction) {}

  Expr run() {
    return rest(0, min_.value.whole.size() == whole_, max_ && max_->value.whole.size() == whole_);
  }

 private:
  /// Digit of a bound at a position counted over the point.
  int digit_of(const Decimal& bound, size_t position) const {
    const std::string& digits = position < whole_ ? bound.whole : bound.fraction;
    const size_t index = position < whole_ ? position : position - whole_;
    return index < digits.size() ? digits[index] - '0' : 0;
  }

  bool all_read(const Decimal& bound, size_t position) const {
    return position >= whole_ + bound.fraction.size();
  }

  /// Behind `position` digits; the number may end from the point on.
  Expr rest(size_t position, bool at_min, bool at_max) {
    // Equal to the bound, more digits only add to it.
    if (at_min && position >= whole_ && all_read(min_.value, position) && !min_.exclusive) {
      at_min = false;
    }
    const auto key = std::array<size_t, 3>{position, at_min, at_max};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    std::vector<Expr> parts;
    if (position >= whole_) {
      const bool above = !at_min;
      const bool below = !at_max || !all_read(max_->value, position) || !max_->exclusive;
      if (above && below) parts.push_back(out_.literal(""));
    }
    if (position < whole_ + fraction_) {
      const Expr digits = next_digits(position, at_min, at_max);
      parts.push_back(position == whole_ ? out_.sequence({out_.literal("."), digits}) : digits);
    }
    return known_[key] = out_.choice(std::move(parts));
  }

  Expr next_digits(size_t position, bool at_min, bool at_max) {
    const bool leading = position == 0 && whole_ > 1;
    const int first = at_min ? digit_of(min_.value, position) : leading ? 1 : 0;
    const int last = at_max ? digit_of(max_->value, position) : 9;
    std::vector<Expr> parts;
    for (int digit = first; digit <= last;) {
      const bool low = at_min && digit == first, high = at_max && digit == last;
      const int until = low || high ? digit : at_max ? last - 1 : last;
      parts.push_back(
          out_.sequence({digit_range(out_, digit, until), rest(position + 1, low, high)}));
      digit = until + 1;
    }
    return out_.choice(std::move(parts));
  }

  Expressions& out_;
  const Bound min_;
  const std::optional<Bound> max_;
  const size_t whole_, fraction_;
  std::map<std::array<size_t, 3>, Expr> known_;
};

Expr decimal_magnitudes(Expressions& out, const Bound& min, const std::optional<Bound>& max,
                        size_t fraction_digits) {
  std::vector<Expr> parts;
  const size_t longest = max ? std::min(max->value.whole.size(), kDecimalDigits) : kDecimalDigits;
  for (size_t whole = min.value.whole.size(); whole <= longest; ++whole) {
    const size_t fraction = std::min(fraction_digits, kDecimalDigits - whole);
    parts.push_back(DecimalDigits(out, min, max, whole, fraction).run());
  }
  return out.choice(std::move(parts));
}

}  // namespace

std::optional<Expr> integers(Expressions& out, int64_t min, int64_t max, int64_t multiple) {
  constexpr int64_t kMaxRemainders = 200, kMaxListed = 1000;
  if (multiple > kMaxRemainders) {
    const int64_t first = min / multiple - 1, last = max / multiple + 1;
    if (last - first > kMaxListed) return std::nullopt;
    std::vector<Expr> parts;
    for (int64_t factor = first; factor <= last; ++factor) {
      int64_t value = 0;
      if (__builtin_mul_overflow(factor, multiple, &value) || value < min || value > max) continue;
      parts.push_back(out.literal(std::to_string(value)));
    }
    return out.choice(std::move(parts));
  }
  const Expr negative = magnitudes(out, std::max<int64_t>(1, -max), -min, multiple);
  return out.choice({out.sequence({out.literal("-"), negative}),
                     magnitudes(out, std::max<int64_t>(0, min), max, multiple)});
}

Expr decimals(Expressions& out, const std::optional<Bound>& min, const std::optional<Bound>& max,
              size_t fraction_digits) {
  const Bound zero{{false, "0", ""}, false}, not_zero{{false, "0", ""}, true};
  auto mirrored = [](Bound bound) {
    bound.value.negative = false;
    return bound;
  };
  std::vector<Expr> parts;
  if (!min || min->value.negative) {
    const Bound least = max && max->value.negative ? mirrored(*max) : not_zero;
    std::optional<Bound> most;
    if (min) most = mirrored(*min);
    parts.push_back(
        out.sequence({out.literal("-"), decimal_magnitudes(out, least, most, fraction_digits)}));
  }
  if (!max || !max->value.negative) {
    const Bound least = min && !min->value.negative ? *min : zero;
    parts.push_back(decimal_magnitudes(out, least, max, fraction_digits));
  }
  return out.choice(std::move(parts));
}

}  // namespace orthrus::grammar
