#include "base/counter_rng.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

using Counter = std::array<uint32_t, 4>;

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32-10).
TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(OpenUniform, NeverReachesItsEnds) {
  EXPECT_EQ(open_uniform(0), 0x1p-33);
  EXPECT_EQ(open_uniform(0xffffffff), 1.0 - 0x1p-33);
  EXPECT_EQ(open_uniform(0x80000000), 0.5 + 0x1p-33);
}

TEST(OpenUniform, IsUniform) {
  // 65536 numbers in 16 cells: 4096 each, standard deviation 62; six of them are allowed.
  std::array<int, 16> counts{};
  for (uint32_t i = 0; i < 16384; ++i) {
    for (uint32_t bits : philox4x32({i, 0, 0, 0}, {7, 0})) {
      ++counts[static_cast<size_t>(open_uniform(bits) * 16)];
    }
  }
  for (int count : counts) EXPECT_NEAR(count, 4096, 6 * 62);
}

}  // namespace
}  // namespace orthrus
