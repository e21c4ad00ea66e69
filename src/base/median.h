#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace orthrus {

/// The middle value of a list that is not empty; the mean of the middle two where it has no middle.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace orthrus
