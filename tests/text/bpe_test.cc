#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace orthrus {
namespace {

using Pair = std::pair<int32_t, int32_t>;

std::vector<int32_t> encode(const Bpe& bpe, std::string_view piece) {
  Bpe::Scratch scratch;
  std::vector<int32_t> out;
  bpe.encode(piece, scratch, out);
  return out;
}

/// Merges by the definition: look for the best pair over all of the piece, again and again.
std::vector<int32_t> merge_plainly(std::vector<int32_t> ids,
                                   const std::map<Pair, std::pair<size_t, int32_t>>& merges) {
  for (;;) {
    size_t best = SIZE_MAX;
    size_t at = 0;
    int32_t result = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      auto found = merges.find({ids[i], ids[i + 1]});
      if (found == merges.end() || found->second.first >= best) continue;
      best = found->second.first;
      at = i;
      result = found->second.second;
    }
    if (best == SIZE_MAX) return ids;
    ids[at] = result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, AgreesWithTheDefinition) {
  std::mt19937 random(11);
  std::array<int32_t, 256> bytes;
  for (int32_t i = 0; i < 256; ++i) bytes[static_cast<size_t>(i)] = i;
  size_t merged = 0;
  for (int round = 0; round < 300; ++round) {
    Bpe bpe;
    bpe.set_byte_ids(bytes);
    std::map<Pair, std::pair<size_t, int32_t>> merges;
    size_t count = 1 + random() % 30;
    bpe.reserve(count);
    std::vector<int32_t> known = {'a', 'b', 'c'};
    for (size_t rank = 0; rank < count; ++rank) {
      Pair pair{known[random() % known.size()], known[random() % known.size()]};
      auto result = static_cast<int32_t>(256 + rank);
      if (merges.contains(pair)) result = merges[pair].second;  // the later rank counts
      merges[pair] = {rank, result};
      bpe.add_merge(pair.first, pair.second, result);
      known.push_back(result);
    }
    std::string text;
    for (size_t i = 1 + random() % 60; i > 0; --i) {
      text.push_back(static_cast<char>('a' + random() % 3));
    }
    std::vector<int32_t> ids = encode(bpe, text);
    EXPECT_EQ(ids, merge_plainly({text.begin(), text.end()}, merges)) << text;
    merged += text.size() - ids.size();
  }
  EXPECT_GT(merged, 1000u);
}

TEST(Bpe, RunsMergeFromTheLeft) {
  Bpe bpe;
  std::array<int32_t, 256> bytes;
  bytes.fill(-1);
  bytes['a'] = 0;
  bpe.set_byte_ids(bytes);
  bpe.reserve(2);
  bpe.add_merge(0, 0, 1);
  bpe.add_merge(1, 1, 2);
  EXPECT_EQ(encode(bpe, "aaaaaaa"), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(encode(bpe, ""), std::vector<int32_t>());
}

TEST(Bpe, OfOneRankTheLeftmostComesFirst) {
  const auto merged = [](bool tied, std::vector<int32_t> symbols) {
    Bpe bpe;
    bpe.reserve(3);
    bpe.add_merge(0, 1, 10);        // a b
    bpe.add_merge(1, 0, 11, tied);  // b a
    bpe.add_merge(0, 0, 12);        // a a
    Bpe::Scratch scratch;
    scratch.id = std::move(symbols);
    std::vector<int32_t> out;
    bpe.merge(scratch, out);
    return out;
  };
  EXPECT_EQ(merged(false, {1, 0, 1}), (std::vector<int32_t>{1, 10}));
  EXPECT_EQ(merged(true, {1, 0, 1}), (std::vector<int32_t>{11, 1}));
  EXPECT_EQ(merged(true, {0, 0, 1, 0, 0}), (std::vector<int32_t>{0, 10, 12}));
}

TEST(Bpe, BytesWithoutAToken) {
  Bpe bpe;
  std::array<int32_t, 256> bytes;
  bytes.fill(-1);
  bytes['a'] = 0;
  bpe.set_byte_ids(bytes);
  EXPECT_EQ(encode(bpe, "axxa"), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(encode(bpe, "xx"), std::vector<int32_t>());
  bpe.set_unknown(9, false);
  EXPECT_EQ(encode(bpe, "axxa"), (std::vector<int32_t>{0, 9, 9, 0}));
  bpe.set_unknown(9, true);
  EXPECT_EQ(encode(bpe, "axxax"), (std::vector<int32_t>{0, 9, 0, 9}));
}

}  // namespace
}  // namespace orthrus
