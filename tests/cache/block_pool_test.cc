#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "cache/block_table.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

// 2 layers * 2 heads * (64 * 16) elements of keys and of values: 16 KiB in bf16.
const KvLayout kSmall{2, 2, 16, KvType::kBF16, KvType::kBF16};

TEST(BlockPool, TakesMemoryAsItIsNeededAndNoMoreThanAllowed) {
  BlockPool pool(kSmall, 20);
  const size_t block_bytes = kSmall.block_bytes();
  ASSERT_EQ(block_bytes, 16384u);
  EXPECT_EQ(pool.allocated_bytes(), 0u);
  std::byte* first = pool.reserve();
  EXPECT_EQ(pool.allocated_bytes(), 16 * block_bytes);  // a slab
  for (int i = 1; i < 16; ++i) pool.reserve();
  EXPECT_EQ(pool.allocated_bytes(), 16 * block_bytes);
  for (int i = 16; i < 20; ++i) pool.reserve();
  EXPECT_EQ(pool.allocated_bytes(), 20 * block_bytes);  // the second one has four
  EXPECT_EQ(pool.used_blocks(), 20);
  EXPECT_FALSE(pool.can_reserve(1));
  EXPECT_TRUE(pool.can_reserve(0));
  EXPECT_THROW(pool.reserve(), Error);
  EXPECT_EQ(pool.used_blocks(), 20);
  pool.release(first);
  EXPECT_EQ(pool.reserve(), first);
  EXPECT_EQ(pool.allocated_bytes(), 20 * block_bytes);
}

TEST(BlockPool, LargeBlocksComeInSmallSlabs) {
  const KvLayout large{28, 8, 128, KvType::kF32, KvType::kF32};  // 14.7 MB a block
  BlockPool pool(large, 100);
  pool.reserve();
  EXPECT_EQ(pool.allocated_bytes(), large.block_bytes());
  pool.reserve();
  EXPECT_EQ(pool.allocated_bytes(), 2 * large.block_bytes());
}

// Blocks in use never overlap, whatever the order of taking and giving back.
TEST(BlockPool, BlocksInUseAreDistinctMemory) {
  BlockPool pool(kSmall, 50);
  std::vector<std::pair<std::byte*, int>> used;
  std::mt19937 random(1);
  for (int step = 0; step < 3000; ++step) {
    if (pool.can_reserve(1) && (used.empty() || random() % 3 != 0)) {
      std::byte* block = pool.reserve();
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      const int mark = step % 251;
      std::memset(block, mark, kSmall.block_bytes());
      used.emplace_back(block, mark);
    } else {
      const size_t i = random() % used.size();
      const auto [block, mark] = used[i];
      ASSERT_EQ(block[0], std::byte(mark));
      ASSERT_EQ(block[kSmall.block_bytes() - 1], std::byte(mark));
      pool.release(block);
      used[i] = used.back();
      used.pop_back();
    }
    ASSERT_EQ(pool.used_blocks(), static_cast<int64_t>(used.size()));
    ASSERT_LE(pool.allocated_bytes(), 50 * kSmall.block_bytes());
  }
}

TEST(BlockPool, RefusesLayoutsTheKernelsCannotServe) {
  EXPECT_THROW(BlockPool({2, 2, 24, KvType::kBF16, KvType::kBF16}, 1), Error);
  EXPECT_THROW(BlockPool({0, 2, 16, KvType::kBF16, KvType::kBF16}, 1), Error);
}

TEST(BlockPool, OfNoBlocksIsFull) {
  BlockPool pool(kSmall, 0);
  EXPECT_FALSE(pool.can_reserve(1));
  EXPECT_THROW(pool.reserve(), Error);
}

TEST(BlockTable, GrowsByWholeBlocks) {
  BlockPool pool(kSmall, 10);
  BlockTable table(pool);
  EXPECT_EQ(table.capacity(), 0);
  table.reserve(0);
  EXPECT_EQ(table.blocks().size(), 0u);
  for (auto [tokens, blocks] : {std::pair{1, 1}, {64, 1}, {65, 2}, {30, 2}, {640, 10}}) {
    table.reserve(tokens);
    EXPECT_EQ(table.blocks().size(), static_cast<size_t>(blocks));
    EXPECT_EQ(table.capacity(), blocks * kKvBlockTokens);
    EXPECT_EQ(table.bytes(), static_cast<size_t>(blocks) * kSmall.block_bytes());
    EXPECT_EQ(pool.used_blocks(), blocks);
  }
  EXPECT_EQ(std::set<std::byte*>(table.blocks().begin(), table.blocks().end()).size(), 10u);
}

TEST(BlockTable, AFullPoolTakesNothingFromIt) {
  BlockPool pool(kSmall, 3);
  BlockTable a(pool), b(pool);
  a.reserve(100);
  EXPECT_THROW(b.reserve(100), Error);
  EXPECT_EQ(pool.used_blocks(), 2);
  EXPECT_EQ(b.capacity(), 0);
  b.reserve(64);
  EXPECT_EQ(pool.used_blocks(), 3);
}

TEST(BlockTable, TheLengthMovesAndShrinkGivesBack) {
  BlockPool pool(kSmall, 10);
  BlockTable table(pool);
  table.reserve(300);
  table.set_length(300);
  EXPECT_EQ(table.length(), 300);
  std::byte* second = table.blocks()[1];
  table.set_length(65);
  EXPECT_EQ(pool.used_blocks(), 5);
  table.shrink();
  EXPECT_EQ(pool.used_blocks(), 2);
  EXPECT_EQ(table.blocks()[1], second);
  table.set_length(64);
  table.shrink();
  EXPECT_EQ(pool.used_blocks(), 1);
  table.set_length(0);
  table.shrink();
  EXPECT_EQ(pool.used_blocks(), 0);
  EXPECT_THROW(table.set_length(1), Error);
  EXPECT_THROW(table.set_length(-1), Error);
}

TEST(BlockTable, MovesAndReturnsItsBlocks) {
  BlockPool pool(kSmall, 10);
  {
    BlockTable a(pool);
    a.reserve(200);
    a.set_length(130);
    BlockTable b(std::move(a));
    EXPECT_EQ(b.length(), 130);
    EXPECT_EQ(b.blocks().size(), 4u);
    EXPECT_EQ(pool.used_blocks(), 4);
    BlockTable c(pool);
    c.reserve(64);
    c = std::move(b);
    EXPECT_EQ(c.length(), 130);
    EXPECT_EQ(c.blocks().size(), 4u);
  }
  EXPECT_EQ(pool.used_blocks(), 0);
  EXPECT_TRUE(pool.can_reserve(10));
}

}  // namespace
}  // namespace orthrus
