#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace orthrus {
namespace {

// Optimal string alignment distance; three rows of the table at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return {};  // no typing mistake
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    const bool near = 3 * distance <= std::max(word.size(), candidate.size());
    if (near && distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string nearest_hint(std::string_view word, std::span<const std::string> candidates,
                         std::string_view prefix) {
  const std::string found = nearest(word, candidates);
  return found.empty() ? found : fmt::format(" (the nearest is {}{})", prefix, found);
}

}  // namespace orthrus
