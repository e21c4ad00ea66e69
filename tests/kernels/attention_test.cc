#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kIsas) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

/// Element i of a head [n] as the cache has it.
double rounded(KvType type, const float* head, int64_t n, int64_t i) {
  const float x = head[i];
  if (type == KvType::kF32) return x;
  if (type == KvType::kBF16) return bf16_to_f32(f32_to_bf16(x));
  float largest = 0;
  for (int64_t j = 0; j < n; ++j) largest = std::max(largest, std::fabs(head[j]));
  const float scale = largest / 127.0f;
  return static_cast<double>(std::nearbyint(x * (1.0f / scale))) * scale;
}

/// Keys and values of a sequence, as floats (what was written) and in cache blocks. Everything that
/// was not written is poison.
class Sequence {
 public:
  Sequence(const KvLayout& layout, int64_t tokens, uint32_t seed) : layout_(layout) {
    const int64_t count = (tokens + kKvBlockTokens - 1) / kKvBlockTokens;
    const size_t words = layout.block_bytes() / 4;
    for (int64_t i = 0; i < count; ++i) {
      memory_.push_back(std::make_unique<uint32_t[]>(words));
      std::fill_n(memory_.back().get(), words, 0x7fc17fc1u);  // NaN as float and as two bf16
      blocks_.push_back(reinterpret_cast<std::byte*>(memory_.back().get()));
    }
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<float> key(static_cast<size_t>(width())), value(key.size());
      for (float& x : key) x = normal(random);
      for (float& x : value) x = normal(random);
      for (int64_t layer = 0; layer < layout.layers; ++layer) {
        if (layer != 0) std::reverse(key.begin(), key.end());
        write(t, layer, key.data(), value.data());
      }
      for (int64_t i = 0; i < width(); ++i) {
        const int64_t n = layout.head_dim, head = i / n * n;
        keys_.push_back(rounded(layout.key_type, key.data() + head, n, i - head));
        values_.push_back(rounded(layout.value_type, value.data() + head, n, i - head));
      }
    }
  }

  int64_t width() const { return layout_.kv_heads * layout_.head_dim; }
  void write(int64_t token, int64_t layer, const float* key, const float* value) {
    write_kv(layout_, layer, blocks_[static_cast<size_t>(token / kKvBlockTokens)],
             token % kKvBlockTokens, key, value);
  }
  /// Overwrites tokens [from, end of the last block) with `poison`.
  void poison(int64_t from, float poison) {
    std::vector<float> bad(static_cast<size_t>(width()), poison);
    const int64_t end = static_cast<int64_t>(blocks_.size()) * kKvBlockTokens;
    for (int64_t t = from; t < end; ++t) {
      for (int64_t layer = 0; layer < layout_.layers; ++layer) {
        write(t, layer, bad.data(), bad.data());
      }
    }
  }
  const std::vector<std::byte*>& blocks() const { return blocks_; }
  double key(int64_t token, int64_t i) const {
    return keys_[static_cast<size_t>(token * width() + i)];
  }
  double value(int64_t token, int64_t i) const {
    return values_[static_cast<size_t>(token * width() + i)];
  }

 private:
  KvLayout layout_;
  std::vector<std::unique_ptr<uint32_t[]>> memory_;
  std::vector<std::byte*> blocks_;
  std::vector<double> keys_, values_;  // [tokens, width], of the last layer written, as cached
};

struct Query {
  const Sequence* sequence;
  int64_t length;
  const Sequence* own = nullptr;
  int64_t own_length = 0;
};

/// Rows of queries over sequences; the numbers of row i depend on i alone.
class Problem {
 public:
  Problem(const KvLayout& layout, int64_t heads, std::vector<Query> queries)
      : layout_(layout), heads_(heads), queries_(std::move(queries)) {
    for (size_t i = 0; i < queries_.size(); ++i) {
      std::mt19937 random(static_cast<uint32_t>(1000 + i));
      std::normal_distribution<float> normal;
      std::vector<float> query(static_cast<size_t>(heads * layout.head_dim));
      for (float& x : query) x = 2 * normal(random);
      inputs_.push_back(std::move(query));
    }
  }

  size_t size() const { return queries_.size(); }
  AttentionWorkspace& workspace() { return workspace_; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(layout_.head_dim)); }

  /// Outputs of the rows with these indices, in that order.
  std::vector<std::vector<float>> run(const ComputeContext& context,
                                      const std::vector<size_t>& order) {
    isa_ = context.isa;
    std::vector<std::vector<float>> out(order.size());
    std::vector<AttentionRow> rows;
    for (size_t i = 0; i < order.size(); ++i) {
      const Query& q = queries_[order[i]];
      out[i].assign(inputs_[order[i]].size(), kNaN);
      AttentionRow row{inputs_[order[i]].data(), out[i].data(), {}, q.length, {}, q.own_length};
      if (q.sequence) row.blocks = q.sequence->blocks();
      if (q.own) row.own_blocks = q.own->blocks();
      rows.push_back(row);
    }
    attention(context, layout_, layout_.layers - 1, heads_, scale(), rows, workspace_);
    return out;
  }
  std::vector<std::vector<float>> run(const ComputeContext& context) {
    std::vector<size_t> order(size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return run(context, order);
  }

  /// Compares row i with attention computed in double precision.
  void check(size_t i, const std::vector<float>& out) const {
    for (int64_t head = 0; head < heads_; ++head) check_head(i, head, out);
  }

 private:
  void check_head(size_t i, int64_t head, const std::vector<float>& out) const {
    const Query& q = queries_[i];
    const int64_t dim = layout_.head_dim;
    const int64_t base = head / (heads_ / layout_.kv_heads) * dim;
    const auto query_at = inputs_[i].begin() + head * dim;
    std::vector<float> query(query_at, query_at + dim);
    const auto rounds = [&](KvType type) {
      return isa_ == Isa::kAvx512Bf16 && type == KvType::kBF16;
    };
    if (rounds(layout_.key_type)) {
      for (float& x : query) x = bf16_to_f32(f32_to_bf16(x));
    }
    // The rounding of a dot product is at most dim * 2^-24 * sum |x y|; it moves a weight by that
    // relative amount (times two: the largest score moves too), and the sums over tokens add
    // theirs.
    std::vector<double> scores;
    double score_error = 0;
    auto add_scores = [&](const Sequence* s, int64_t length) {
      for (int64_t t = 0; t < length; ++t) {
        double dot = 0, size = 0;
        for (int64_t d = 0; d < dim; ++d) {
          const double product = query[static_cast<size_t>(d)] * s->key(t, base + d);
          dot += product;
          size += std::fabs(product);
        }
        scores.push_back(dot * scale());
        score_error = std::max(score_error, (static_cast<double>(dim) + 2) * size * scale());
      }
    };
    add_scores(q.sequence, q.length);
    add_scores(q.own, q.own_length);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& s : scores) sum += s = std::exp(s - largest);
    for (int64_t d = 0; d < dim; ++d) {
      double expected = 0, size = 0;
      for (size_t t = 0; t < scores.size(); ++t) {
        const int64_t at = static_cast<int64_t>(t);
        const double v =
            at < q.length ? q.sequence->value(at, base + d) : q.own->value(at - q.length, base + d);
        expected += scores[t] / sum * v;
        size += scores[t] / sum * std::fabs(v);
      }
      const double tokens = static_cast<double>(scores.size());
      // Rounded weights are off by 2^-9 each, and so is their sum.
      const double rounded = rounds(layout_.value_type) ? 0x1p-8 : 0;
      const double tolerance = size * (0x1p-24 * (4 * score_error + 2 * tokens + 32) + rounded);
      ASSERT_NEAR(out[static_cast<size_t>(head * dim + d)], expected, tolerance)
          << "row " << i << " head " << head << " dimension " << d << " length " << q.length << "+"
          << q.own_length;
    }
  }

  KvLayout layout_;
  int64_t heads_;
  std::vector<Query> queries_;
  std::vector<std::vector<float>> inputs_;
  Isa isa_ = Isa::kPortable;  // of the last run
  AttentionWorkspace workspace_;
};

void expect_same(const std::vector<float>& a, const std::vector<float>& b, size_t row) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << "row " << row;
}

const std::vector<int64_t> kLengths = {1,   2,   15,  16,  17,  31,  32,  63,  64,  65,  127, 128,
                                       255, 256, 257, 300, 511, 512, 513, 700, 768, 769, 999, 1000};
constexpr std::pair<KvType, KvType> kTypePairs[] = {
    {KvType::kBF16, KvType::kBF16}, {KvType::kBF16, KvType::kF32}, {KvType::kF32, KvType::kBF16},
    {KvType::kF32, KvType::kF32},   {KvType::kQ8, KvType::kQ8},    {KvType::kQ8, KvType::kBF16},
    {KvType::kF32, KvType::kQ8},    {KvType::kBF16, KvType::kQ8},  {KvType::kQ8, KvType::kF32}};

class AttentionTest : public testing::TestWithParam<Isa> {
 protected:
  ThreadPool pool_{2};
  ComputeContext context_{GetParam(), pool_};
};
INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return std::string(isa_name(p.param)); });

TEST_P(AttentionTest, MatchesDoubleReferenceAtEveryBorderAndType) {
  for (auto [key_type, value_type] : kTypePairs) {
    for (int64_t head_dim : {16, 48, 64, 128}) {
      KvLayout layout{1, 2, head_dim, key_type, value_type};
      Sequence sequence(layout, 1000, 1);
      std::vector<Query> queries;
      for (int64_t length : kLengths) queries.push_back({&sequence, length});
      Problem problem(layout, 4, queries);
      auto out = problem.run(context_);
      for (size_t i = 0; i < out.size(); ++i) problem.check(i, out[i]);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(AttentionTest, EveryHeadRatioAndAnInnerLayer) {
  for (int64_t ratio : {1, 2, 3, 7}) {
    KvLayout layout{2, 3, 64, KvType::kBF16, KvType::kBF16};
    Sequence sequence(layout, 600, 2);
    std::vector<Query> queries;
    for (int64_t length = 590; length <= 600; ++length) queries.push_back({&sequence, length});
    // Layer 1 holds the reversed keys that Sequence remembers last.
    Problem problem(layout, 3 * ratio, queries);
    auto out = problem.run(context_);
    for (size_t i = 0; i < out.size(); ++i) problem.check(i, out[i]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(AttentionTest, OwnBlockFollowsTheCachedTokens) {
  KvLayout layout{1, 2, 64, KvType::kBF16, KvType::kBF16};
  Sequence sequence(layout, 520, 3);
  for (int64_t own_rows : {1, 8, 32, 65, 300}) {
    Sequence own(layout, own_rows, 4);
    std::vector<Query> queries;
    for (int64_t length : {0, 1, 64, 255, 256, 257, 512, 520}) {
      for (int64_t i = 0; i < std::min<int64_t>(own_rows, 5); ++i) {
        queries.push_back({&sequence, length, &own, own_rows});
      }
    }
    Problem problem(layout, 6, queries);
    auto out = problem.run(context_);
    for (size_t i = 0; i < out.size(); ++i) problem.check(i, out[i]);
    if (HasFatalFailure()) return;
  }
}

/// Rows of two sequences and of diffusion blocks, causal runs and single rows mixed.
std::vector<Query> mixed_queries(const Sequence& a, const Sequence& b, const Sequence& own) {
  std::vector<Query> queries;
  for (int64_t i = 0; i < 40; ++i) queries.push_back({&a, 230 + i});
  for (int64_t i = 0; i < 9; ++i) queries.push_back({&a, 700, &own, 9});
  for (int64_t i = 0; i < 5; ++i) queries.push_back({&b, 1 + i * 63});
  for (int64_t i = 0; i < 3; ++i) queries.push_back({&b, 0, &own, 3 + 3 * i});
  for (int64_t i = 0; i < 8; ++i) queries.push_back({&a, 993 + i});
  return queries;
}

TEST_P(AttentionTest, RowsDoNotDependOnCompanyOrderOrThreads) {
  for (auto [key_type, value_type] : kTypePairs) {
    for (auto [head_dim, ratio] : {std::pair{64, 3}, {128, 2}, {48, 7}}) {
      KvLayout layout{1, 2, head_dim, key_type, value_type};
      Sequence a(layout, 1000, 5), b(layout, 400, 6), own(layout, 9, 7);
      Problem problem(layout, 2 * ratio, mixed_queries(a, b, own));
      std::vector<std::vector<float>> alone;
      for (size_t i = 0; i < problem.size(); ++i) alone.push_back(problem.run(context_, {i})[0]);
      std::mt19937 random(8);
      for (int threads = 1; threads <= 4; ++threads) {
        ThreadPool pool(threads);
        ComputeContext context{GetParam(), pool};
        std::vector<size_t> order(problem.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        if (threads % 2 == 0) std::shuffle(order.begin(), order.end(), random);
        auto out = problem.run(context, order);
        for (size_t i = 0; i < order.size(); ++i) expect_same(out[i], alone[order[i]], order[i]);
        // Every number of rows from one on, as passes have them.
        for (size_t count : {size_t{2}, size_t{3}, size_t{4}, size_t{5}, size_t{11}, size_t{33}}) {
          std::vector<size_t> part(order.begin(), order.begin() + static_cast<int64_t>(count));
          out = problem.run(context, part);
          for (size_t i = 0; i < count; ++i) expect_same(out[i], alone[part[i]], part[i]);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

// So many rows that the results of chunks are merged at once instead of being kept.
TEST_P(AttentionTest, ALongPrefillEqualsItsRowsAlone) {
  KvLayout layout{1, 3, 64, KvType::kBF16, KvType::kBF16};
  Sequence sequence(layout, 1400, 9);
  std::vector<Query> queries;
  for (int64_t i = 0; i < 512; ++i) queries.push_back({&sequence, 889 + i});
  Problem problem(layout, 9, queries);
  auto out = problem.run(context_);
  for (size_t i = 0; i < queries.size(); i += 13) {
    expect_same(out[i], problem.run(context_, {i})[0], i);
    if (HasFatalFailure()) return;
  }
  problem.check(511, out[511]);
}

// A decode step of many sequences: each is one task a head, however many chunks it has.
TEST_P(AttentionTest, ManyShortSequencesEqualTheirRowsAlone) {
  for (KvType type : {KvType::kBF16, KvType::kQ8}) {
    KvLayout layout{1, 3, 64, type, type};
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Query> queries;
    for (int64_t i = 0; i < 24; ++i) {
      sequences.push_back(
          std::make_unique<Sequence>(layout, 40 + 17 * i, static_cast<uint32_t>(20 + i)));
      queries.push_back({sequences.back().get(), 40 + 17 * i});
    }
    Problem problem(layout, 9, queries);
    const auto out = problem.run(context_);
    for (size_t i = 0; i < queries.size(); ++i) {
      expect_same(out[i], problem.run(context_, {i})[0], i);
      problem.check(i, out[i]);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(AttentionTest, NothingBeyondTheLengthIsUsed) {
  for (auto [key_type, value_type] : kTypePairs) {
    KvLayout layout{1, 2, 64, key_type, value_type};
    for (int64_t length : kLengths) {
      std::vector<std::vector<float>> results;
      for (float poison : {0.0f, kNaN, std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(), 3e38f}) {
        Sequence sequence(layout, length, 10), own(layout, 5, 11);
        sequence.poison(length, poison);
        own.poison(5, poison);
        Problem problem(layout, 4, {{&sequence, length}, {&sequence, length, &own, 5}});
        auto out = problem.run(context_);
        out[0].insert(out[0].end(), out[1].begin(), out[1].end());
        for (float x : out[0]) ASSERT_TRUE(std::isfinite(x));
        results.push_back(out[0]);
      }
      for (const auto& result : results) expect_same(result, results[0], 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(AttentionTest, NaNInAQueryIsSeenInItsRowAlone) {
  for (auto [key_type, value_type] : kTypePairs) {
    KvLayout layout{1, 1, 64, key_type, value_type};
    Sequence sequence(layout, 300, 12);
    std::vector<float> bad(64, kNaN), good(64, 0.5f), bad_out(64), good_out(64);
    AttentionRow rows[] = {{bad.data(), bad_out.data(), sequence.blocks(), 300, {}, 0},
                           {good.data(), good_out.data(), sequence.blocks(), 300, {}, 0}};
    AttentionWorkspace workspace;
    attention(context_, layout, 0, 1, 0.125f, rows, workspace);
    for (int i = 0; i < 64; ++i) {
      EXPECT_TRUE(std::isnan(bad_out[static_cast<size_t>(i)]));
      EXPECT_TRUE(std::isfinite(good_out[static_cast<size_t>(i)]));
    }
  }
}

// In q8 a head with an element that is not finite is NaN as a whole, for those who attend to it.
TEST_P(AttentionTest, ATokenThatIsNotFiniteInQ8IsSeenByItsReadersAlone) {
  KvLayout layout{1, 2, 64, KvType::kQ8, KvType::kQ8};
  constexpr int64_t kBad = 37;
  Sequence sequence(layout, 300, 14);
  Problem problem(layout, 4, {{&sequence, kBad}, {&sequence, kBad + 1}, {&sequence, 300}});
  const auto before = problem.run(context_);
  const std::vector<float> good(128, 0.25f);
  for (float bad :
       {kNaN, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> head(good);
    head[70] = bad;  // of the second of both heads
    for (bool in_key : {true, false}) {
      sequence.write(kBad, 0, in_key ? head.data() : good.data(),
                     in_key ? good.data() : head.data());
      const auto out = problem.run(context_);
      expect_same(out[0], before[0], 0);
      for (size_t row : {size_t{1}, size_t{2}}) {
        for (size_t i = 0; i < out[row].size(); ++i) {
          ASSERT_EQ(std::isnan(out[row][i]), i >= 128) << "row " << row << " output " << i;
        }
      }
    }
  }
}

// One key far above all others: the output is its value, exactly, wherever it stands. That of bf16
// kernels too: the value is a bf16, and the weights of all others are 0.
TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  for (auto [key_type, value_type] : kTypePairs) {
    if (value_type == KvType::kQ8) continue;  // rounds the value
    const KvLayout layout{1, 1, 16, key_type, value_type};
    for (int64_t winner : {0, 200, 256, 599}) {
      Sequence sequence(layout, 600, 13);
      std::vector<float> key(16, 1000.0f), value(16), query(16, 1.0f), out(16);
      for (int i = 0; i < 16; ++i) value[static_cast<size_t>(i)] = static_cast<float>(i - 7);
      sequence.write(winner, 0, key.data(), value.data());
      AttentionRow row{query.data(), out.data(), sequence.blocks(), 600, {}, 0};
      AttentionWorkspace workspace;
      attention(context_, layout, 0, 1, 1.0f, {&row, 1}, workspace);
      for (size_t i = 0; i < 16; ++i) EXPECT_EQ(out[i], value[i]);
    }
  }
}

TEST(WriteKv, PlacesAndRoundsEveryElement) {
  KvLayout layout{2, 2, 32, KvType::kBF16, KvType::kF32};
  std::vector<std::byte> block(layout.block_bytes());
  std::vector<float> key(64), value(64);
  for (size_t i = 0; i < 64; ++i) {
    key[i] = 1.0f + static_cast<float>(i) * 0x1.4p-8f;
    value[i] = 3.0f + static_cast<float>(i) * 0x1p-20f;
  }
  write_kv(layout, 1, block.data(), 37, key.data(), value.data());
  const std::byte* layer = block.data() + layout.layer_bytes();
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t d = 0; d < 32; ++d) {
      const auto* keys =
          reinterpret_cast<const bf16_t*>(layer + static_cast<size_t>(head) * layout.key_bytes());
      const auto* values = reinterpret_cast<const float*>(
          layer + 2 * layout.key_bytes() + static_cast<size_t>(head) * layout.value_bytes());
      // Panel 37 / 16, pair d / 2, lane 37 % 16.
      EXPECT_EQ(keys[2 * 16 * 32 + (d / 2) * 32 + 5 * 2 + d % 2],
                f32_to_bf16(key[static_cast<size_t>(head * 32 + d)]));
      EXPECT_EQ(values[37 * 32 + d], value[static_cast<size_t>(head * 32 + d)]);
    }
  }
}

TEST(WriteKv, LaysValuesInBf16OutInPairsOfTokens) {
  const KvLayout layout{1, 2, 32, KvType::kBF16, KvType::kBF16};
  std::vector<std::byte> block(layout.block_bytes());
  std::vector<float> key(64), value(64);
  for (int64_t slot : {36, 37}) {
    for (size_t i = 0; i < 64; ++i)
      value[i] = static_cast<float>(slot) + static_cast<float>(i) * 0x1.4p-8f;
    write_kv(layout, 0, block.data(), slot, key.data(), value.data());
  }
  for (int64_t head = 0; head < 2; ++head) {
    const auto* values = reinterpret_cast<const bf16_t*>(
        block.data() + 2 * layout.key_bytes() + static_cast<size_t>(head) * layout.value_bytes());
    for (int64_t d = 0; d < 32; ++d) {
      for (int64_t odd = 0; odd < 2; ++odd) {
        const float expected =
            static_cast<float>(36 + odd) + static_cast<float>(head * 32 + d) * 0x1.4p-8f;
        EXPECT_EQ(values[36 * 32 + 2 * d + odd], f32_to_bf16(expected));
      }
    }
  }
}

TEST(WriteKv, Q8RoundsToNearestEvenWithOneScaleAHead) {
  KvLayout layout{2, 2, 32, KvType::kQ8, KvType::kQ8};
  ASSERT_EQ(layout.key_bytes(), size_t{64 * 32 + 64 * 4});
  std::vector<std::byte> block(layout.block_bytes(), std::byte{0x55});
  // Powers of two times 127 have exact scales; halves between two codes go to the even one.
  std::vector<float> key(64), value(64);
  const std::vector<std::pair<float, int>> cases = {
      {127, 127},  {-127, -127}, {0.5f, 0},     {1.5f, 2},   {2.5f, 2},     {-0.5f, 0},
      {-1.5f, -2}, {-2.5f, -2},  {126.5f, 126}, {2.501f, 3}, {-3.499f, -3}, {0, 0}};
  for (size_t i = 0; i < cases.size(); ++i) {
    key[i] = cases[i].first * 0x1p-9f;
    value[32 + i] = cases[i].first * 4;
  }
  key[40] = 1e-37f;  // 1e-37 / 127 is no normal number: scale 0
  value[3] = -1000;  // alone in its head
  write_kv(layout, 1, block.data(), 37, key.data(), value.data());
  const std::byte* layer = block.data() + layout.layer_bytes();
  const auto codes = [&](int64_t head) {
    return reinterpret_cast<const int8_t*>(layer + static_cast<size_t>(head) * layout.key_bytes());
  };
  const auto scale = [&](int64_t head) {
    return reinterpret_cast<const float*>(codes(head) + layout.scale_offset())[37];
  };
  const auto key_code = [&](int64_t head, size_t d) {
    return codes(head)[2 * 16 * 32 + static_cast<int64_t>(d) * 16 + 5];
  };
  const auto value_code = [&](int64_t head, size_t d) {
    return codes(2 + head)[37 * 32 + static_cast<int64_t>(d)];
  };
  EXPECT_EQ(scale(0), 0x1p-9f);
  EXPECT_EQ(scale(1), 0);
  EXPECT_EQ(scale(2), 1000.0f / 127);
  EXPECT_EQ(scale(3), 4);
  for (size_t d = 0; d < 32; ++d) {
    const int expected = d < cases.size() ? cases[d].second : 0;
    EXPECT_EQ(key_code(0, d), expected) << d;
    EXPECT_EQ(key_code(1, d), 0) << d;
    EXPECT_EQ(value_code(0, d), d == 3 ? -127 : 0) << d;
    EXPECT_EQ(value_code(1, d), expected) << d;
  }
  // Nothing but the token's own bytes was written: 2 heads of 32 codes and a scale, keys and
  // values.
  EXPECT_EQ(std::count(block.begin(), block.end(), std::byte{0x55}),
            static_cast<int64_t>(block.size()) - 4 * (32 + 4));
}

/// The room that is asked for a worst case holds it: no call within makes the workspace grow.
TEST(AttentionWorkspace, WhatWasReservedIsEnough) {
  const KvLayout layout{1, 3, 32, KvType::kBF16, KvType::kBF16};
  constexpr int64_t kHeads = 9, kRows = 200, kTokens = 1500, kOwn = 40;
  const Sequence one(layout, kTokens, 1), other(layout, kTokens, 2), own(layout, kOwn, 3);
  for (const int threads : {1, 2, 5, 16}) {
    ThreadPool pool(threads);
    const ComputeContext context{Isa::kPortable, pool};
    const size_t enough = attention_workspace_bytes(threads, layout, kHeads, kRows, kTokens, kOwn);
    const auto expect_fits = [&](std::vector<Query> queries) {
      std::vector<size_t> order(queries.size());
      std::iota(order.begin(), order.end(), size_t{0});
      Problem problem(layout, kHeads, std::move(queries));
      problem.workspace().reserve_all(enough);
      problem.run(context, order);
      EXPECT_EQ(problem.workspace().bytes(), enough) << threads << " threads, " << order.size();
    };
    for (const int64_t rows : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{64}, kRows}) {
      std::vector<Query> prefill, drafts, both;
      for (int64_t i = 0; i < rows; ++i) {
        prefill.push_back({&one, kTokens - rows + i + 1});
        drafts.push_back({&one, kTokens, &own, kOwn});
        both.push_back({i % 2 == 0 ? &one : &other, kTokens, &own, kOwn});  // a band a row
      }
      expect_fits(prefill);
      expect_fits(drafts);
      expect_fits(both);
    }
  }
}

TEST(KvLayout, RefusesHeadSizesTheKernelsCannotServe) {
  EXPECT_NO_THROW(check_kv_layout({1, 1, 80, KvType::kBF16, KvType::kBF16}));
  EXPECT_THROW(check_kv_layout({1, 1, 72, KvType::kBF16, KvType::kBF16}), Error);
  EXPECT_THROW(check_kv_layout({1, 1, 0, KvType::kBF16, KvType::kBF16}), Error);
  EXPECT_THROW(check_kv_layout({0, 1, 64, KvType::kBF16, KvType::kBF16}), Error);
}

}  // namespace
}  // namespace orthrus
