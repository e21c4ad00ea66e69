#include "engine/fair_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

namespace orthrus {

std::vector<size_t> fair_order(const std::vector<const Claim*>& claims) {
  std::vector<size_t> order(claims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return claims[a]->arrival < claims[b]->arrival; });
  // The how-manieth of its client and priority each one is.
  std::map<std::pair<int, std::string_view>, int64_t> counts;
  std::vector<int64_t> turn(claims.size());
  for (const size_t i : order) turn[i] = counts[{claims[i]->priority, claims[i]->client}]++;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(claims[a]->priority, turn[a], claims[a]->arrival) <
           std::tuple(claims[b]->priority, turn[b], claims[b]->arrival);
  });
  return order;
}

}  // namespace orthrus
