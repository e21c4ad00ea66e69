#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace orthrus {

/// Pearson's statistic of counts against probabilities. Cells that expect under 5 are joined into
/// one.
struct ChiSquare {
  double statistic = 0;
  int degrees = 0;
  /// The 0.9999 quantile (Wilson and Hilferty's approximation): a correct sampler passes with
  /// probability 0.9999; the seeds are fixed, so it passes always or never.
  double limit() const {
    const double k = degrees, a = 2 / (9 * k);
    return k * std::pow(1 - a + 3.719 * std::sqrt(a), 3);
  }
};

inline ChiSquare chi_square(const std::vector<int64_t>& counts,
                            const std::vector<double>& probabilities) {
  double n = 0, rest_expected = 0, rest_found = 0;
  for (const int64_t count : counts) n += static_cast<double>(count);
  ChiSquare result;
  const auto cell = [&](double expected, double found) {
    result.statistic += (found - expected) * (found - expected) / expected;
    ++result.degrees;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = n * probabilities[i], found = static_cast<double>(counts[i]);
    if (probabilities[i] == 0 && counts[i] > 0) return {HUGE_VAL, 1};
    if (expected < 5) {
      rest_expected += expected;
      rest_found += found;
    } else {
      cell(expected, found);
    }
  }
  if (rest_expected >= 5) cell(rest_expected, rest_found);
  --result.degrees;
  return result;
}

}  // namespace orthrus
