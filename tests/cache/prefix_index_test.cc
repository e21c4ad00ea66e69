#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "cache/block_table.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

const KvLayout kSmall{1, 1, 16, KvType::kBF16, KvType::kBF16};

std::vector<int32_t> tokens_of(int64_t size, int32_t salt = 0) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < size; ++i) tokens.push_back(static_cast<int32_t>(i * 31 % 1009) + salt);
  return tokens;
}

/// As a sequence that has computed all of its tokens.
BlockTable computed(BlockPool& pool, PrefixIndex& index, const std::vector<int32_t>& tokens) {
  BlockTable table(pool, &index);
  table.adopt_prefix(tokens);
  table.reserve(static_cast<int64_t>(tokens.size()));
  table.set_length(static_cast<int64_t>(tokens.size()));
  table.publish(tokens);
  return table;
}

TEST(PrefixIndex, SharesFullBlocksOfACommonBeginning) {
  BlockPool pool(kSmall, 100);
  PrefixIndex index(pool);
  const auto tokens = tokens_of(200);
  const BlockTable first = computed(pool, index, tokens);
  EXPECT_EQ(first.shared_tokens(), 192);
  EXPECT_EQ(pool.used_blocks(), 4);

  auto other = tokens;
  other[150] ^= 1;
  const BlockTable second = computed(pool, index, other);
  EXPECT_EQ(pool.used_blocks(), 6);  // its third block and its rest
  EXPECT_EQ(second.blocks()[0], first.blocks()[0]);
  EXPECT_EQ(second.blocks()[1], first.blocks()[1]);
  EXPECT_NE(second.blocks()[2], first.blocks()[2]);

  // The same tokens behind another beginning are another block.
  auto shifted = tokens_of(64, 5);
  shifted.insert(shifted.end(), tokens.begin() + 64, tokens.end());
  BlockTable third(pool, &index);
  third.adopt_prefix(shifted);
  EXPECT_EQ(third.length(), 0);
}

TEST(PrefixIndex, AdoptsNoBlockThatTheTokensDoNotFill) {
  BlockPool pool(kSmall, 100);
  PrefixIndex index(pool);
  const auto tokens = tokens_of(128);
  computed(pool, index, tokens);
  EXPECT_EQ(index.idle_blocks(), 2);
  for (const auto& [size, found] :
       std::map<size_t, int64_t>{{63, 0}, {64, 64}, {127, 64}, {128, 128}}) {
    BlockTable table(pool, &index);
    table.adopt_prefix(std::span(tokens).first(size));
    EXPECT_EQ(table.length(), found) << size;
    EXPECT_EQ(table.capacity(), found);
  }
  EXPECT_EQ(index.idle_blocks(), 2);
  EXPECT_EQ(pool.used_blocks(), 2);
}

TEST(PrefixIndex, PublishesOnlyWhatIsCommitted) {
  BlockPool pool(kSmall, 100);
  PrefixIndex index(pool);
  const auto tokens = tokens_of(130);
  BlockTable table(pool, &index);
  table.reserve(130);
  table.set_length(127);  // the rest lies there, but uncommitted
  table.publish(tokens);
  EXPECT_EQ(table.shared_tokens(), 64);
  table.set_length(128);
  table.publish(tokens);
  EXPECT_EQ(table.shared_tokens(), 128);
  EXPECT_THROW(table.set_length(127), Error);  // what is shared is never written again
}

// Two sequences compute the same block side by side: one of them stays.
TEST(PrefixIndex, EqualBlocksBecomeOne) {
  BlockPool pool(kSmall, 100);
  PrefixIndex index(pool);
  const auto tokens = tokens_of(70);
  BlockTable first(pool, &index), second(pool, &index);
  for (BlockTable* table : {&first, &second}) {
    table->reserve(70);
    table->set_length(70);
  }
  EXPECT_EQ(pool.used_blocks(), 4);
  first.publish(tokens);
  second.publish(tokens);
  EXPECT_EQ(pool.used_blocks(), 3);
  EXPECT_EQ(first.blocks()[0], second.blocks()[0]);
  EXPECT_EQ(index.known_blocks(), 1);
}

TEST(PrefixIndex, DropsWhatWasUsedLongestAgoAndSuccessorsFirst) {
  BlockPool pool(kSmall, 6);
  PrefixIndex index(pool);
  const auto old = tokens_of(128, 1), recent = tokens_of(128, 2), used = tokens_of(64, 3);
  computed(pool, index, old);
  computed(pool, index, recent);
  const BlockTable held = computed(pool, index, used);
  EXPECT_EQ(pool.used_blocks(), 5);
  EXPECT_TRUE(index.make_room(2));
  EXPECT_EQ(index.known_blocks(), 4);
  {
    BlockTable table(pool, &index);
    table.adopt_prefix(old);
    EXPECT_EQ(table.length(), 64);  // its second block went, its first stayed
  }
  EXPECT_TRUE(index.make_room(5));
  EXPECT_EQ(index.known_blocks(), 1);
  EXPECT_FALSE(index.make_room(6));  // the last one is in use
  BlockTable table(pool, &index);
  table.adopt_prefix(used);
  EXPECT_EQ(table.length(), 64);
}

// Against a plain model of it: sequences come, grow, and go in any order; what one adopts was
// computed from just these tokens, and no block is lost.
TEST(PrefixIndex, RandomSequencesAdoptOnlyTheirOwnTokens) {
  constexpr int64_t kBlocks = 40;
  BlockPool pool(kSmall, kBlocks);
  {
    PrefixIndex index(pool);
    std::map<std::byte*, std::vector<int32_t>> content;  // tokens up to the block's end
    struct Running {
      std::vector<int32_t> tokens;
      BlockTable table;
    };
    std::deque<Running> running;
    std::mt19937 random(7);
    int64_t adopted = 0;
    for (int step = 0; step < 4000; ++step) {
      if (random() % 3 != 0 || running.empty()) {
        // Few kinds of beginnings, so that many are shared.
        std::vector<int32_t> tokens =
            tokens_of(64 + random() % 300, static_cast<int32_t>(random() % 3));
        if (random() % 2) tokens[random() % tokens.size()] = 2000;
        const int64_t size = static_cast<int64_t>(tokens.size());
        BlockTable table(pool, &index);
        table.adopt_prefix(tokens);
        adopted += table.length();
        for (int64_t b = 0; b * 64 < table.length(); ++b) {
          const std::vector<int32_t> expected(tokens.begin(), tokens.begin() + (b + 1) * 64);
          ASSERT_EQ(content.at(table.blocks()[static_cast<size_t>(b)]), expected);
        }
        if (!index.make_room(table.blocks_missing(size))) continue;
        const int64_t before = table.length();
        table.reserve(size);
        table.set_length(size);
        table.publish(tokens);
        for (int64_t b = before / 64; (b + 1) * 64 <= size; ++b) {
          content[table.blocks()[static_cast<size_t>(b)]] = {tokens.begin(),
                                                             tokens.begin() + (b + 1) * 64};
        }
        running.push_back({std::move(tokens), std::move(table)});
      } else {
        running.erase(running.begin() + static_cast<ptrdiff_t>(random() % running.size()));
      }
      ASSERT_LE(pool.used_blocks(), kBlocks);
      ASSERT_LE(index.idle_blocks(), index.known_blocks());
    }
    EXPECT_GT(adopted, 50000);
    running.clear();
    EXPECT_EQ(index.idle_blocks(), index.known_blocks());
    EXPECT_EQ(pool.used_blocks(), index.known_blocks());
  }
  EXPECT_EQ(pool.used_blocks(), 0);
}

}  // namespace
}  // namespace orthrus
