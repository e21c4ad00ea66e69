#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace orthrus {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 11);
  return bytes;
}

TEST(Checksum, EveryChangedBitShows) {
  for (const size_t count : {1, 7, 64, 65, 200}) {
    std::vector<std::byte> bytes = some_bytes(count);
    const uint64_t whole = checksum(bytes);
    for (size_t i = 0; i < count; ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] ^= std::byte{1} << bit;
        EXPECT_NE(checksum(bytes), whole) << count << " bytes, bit " << bit << " of byte " << i;
        bytes[i] ^= std::byte{1} << bit;
      }
    }
    EXPECT_EQ(checksum(bytes), whole);
  }
}

TEST(Checksum, TheNumberOfBytesCounts) {
  const std::vector<std::byte> zeros(300);
  std::set<uint64_t> sums;
  for (size_t count = 0; count <= zeros.size(); ++count) {
    sums.insert(checksum(std::span(zeros).first(count)));
  }
  EXPECT_EQ(sums.size(), zeros.size() + 1);
}

TEST(Checksum, TheOrderCounts) {
  std::vector<std::byte> bytes = some_bytes(256);
  const uint64_t sum = checksum(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
  EXPECT_NE(checksum(bytes), sum);
}

}  // namespace
}  // namespace orthrus
