#include "base/available_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace orthrus {
namespace {

// More than this program needs, less than any machine has.
TEST(AvailableMemory, IsPlausible) {
  const int64_t bytes = available_memory();
  EXPECT_GT(bytes, int64_t{16} << 20);
  EXPECT_LT(bytes, int64_t{1} << 50);
}

}  // namespace
}  // namespace orthrus
