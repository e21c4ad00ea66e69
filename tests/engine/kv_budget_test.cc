#include "engine/kv_budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "orthrus/error.h"

namespace orthrus {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

/// One MiB a block of 64 tokens.
KvLayout mib_layout() {
  return {.layers = 64,
          .kv_heads = 1,
          .head_dim = 64,
          .key_type = KvType::kBF16,
          .value_type = KvType::kBF16};
}

std::string message_of(double gib, int64_t available, int64_t max_seq_len) {
  try {
    kv_budget_blocks(gib, available, mib_layout(), max_seq_len);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(KvBudget, IsTheSmallerOfTheConfigAndFreeMemory) {
  ASSERT_EQ(mib_layout().block_bytes(), size_t{1} << 20);
  EXPECT_EQ(kv_budget_blocks(2, 100 * kGiB, mib_layout(), 4096), 2048);
  EXPECT_EQ(kv_budget_blocks(40, 10 * kGiB, mib_layout(), 4096), 8192);  // 80 % of 10 GiB
  EXPECT_EQ(kv_budget_blocks(0.5, 0, mib_layout(), 4096), 512);          // nothing known
  EXPECT_EQ(kv_budget_blocks(0.0625, kGiB, mib_layout(), 4096), 64);     // just one sequence
}

TEST(KvBudget, RefusesWhatHoldsNoSequence) {
  EXPECT_EQ(message_of(0.03125, kGiB, 4096),
            "KV cache: 0.0312 GiB (kv_cache_memory_budget_gb) hold 2048 tokens, expected room for "
            "one sequence of 4096 (-c): 0.0625 GiB");
  EXPECT_NE(message_of(40, kGiB / 32, 4096).find("(80 % of the free memory)"), std::string::npos);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(message_of(bad, kGiB, 64).find("expected a number above 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace orthrus
