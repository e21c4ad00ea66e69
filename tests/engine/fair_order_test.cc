#include "engine/fair_order.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

/// Numbers (arrivals) of the claims in the order they are served.
std::vector<uint64_t> served(const std::vector<Claim>& claims) {
  std::vector<const Claim*> pointers;
  for (const Claim& claim : claims) pointers.push_back(&claim);
  std::vector<uint64_t> arrivals;
  for (const size_t i : fair_order(pointers)) arrivals.push_back(claims[i].arrival);
  return arrivals;
}

TEST(FairOrder, OneClientIsServedInOrder) {
  EXPECT_EQ(served({{"a", 0, 3}, {"a", 0, 1}, {"a", 0, 2}}), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(served({}), std::vector<uint64_t>{});
}

TEST(FairOrder, AFloodDelaysAnotherClientByOneTurn) {
  std::vector<Claim> claims;
  for (uint64_t i = 1; i <= 100; ++i) claims.push_back({"flood", 0, i});
  claims.push_back({"other", 0, 101});
  claims.push_back({"other", 0, 102});
  const auto order = served(claims);
  EXPECT_EQ(order[0], 1u);
  EXPECT_EQ(order[1], 101u);
  EXPECT_EQ(order[2], 2u);
  EXPECT_EQ(order[3], 102u);
  EXPECT_EQ(order[4], 3u);
  EXPECT_EQ(order.back(), 100u);
}

TEST(FairOrder, PriorityGoesFirst) {
  EXPECT_EQ(served({{"a", 1, 1}, {"b", 0, 2}, {"a", -5, 3}, {"a", 0, 4}}),
            (std::vector<uint64_t>{3, 2, 4, 1}));
}

}  // namespace
}  // namespace orthrus
