#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "base/counter_rng.h"
#include "decode/chi_square.h"

namespace orthrus {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Logits as models have them: most near 0, a few far above; some equal ones.
std::vector<float> random_row(int64_t vocab, uint32_t seed, double spread) {
  std::vector<float> row(static_cast<size_t>(vocab));
  for (size_t i = 0; i < row.size(); ++i) {
    const auto bits = philox4x32({static_cast<uint32_t>(i), seed, 0, 0}, {21, 4});
    double sum = 0;
    for (const uint32_t b : bits) sum += open_uniform(b) - 0.5;
    row[i] = static_cast<float>(std::round(sum * spread * 64) / 64);
  }
  return row;
}

/// The chain in plain double arithmetic with sorts of everything: {id, probability}, best first.
std::vector<std::pair<int32_t, double>> plain_chain(const std::vector<float>& logits,
                                                    const std::vector<int32_t>& history,
                                                    const SamplingOptions& o) {
  std::vector<double> x(logits.begin(), logits.end());
  for (const auto& [token, bias] : o.logit_bias) x[static_cast<size_t>(token)] += bias;
  std::map<int32_t, int> counts;
  const int64_t n = static_cast<int64_t>(history.size());
  const int64_t window = o.repeat_last_n < 0 ? n : std::min(n, o.repeat_last_n);
  for (int64_t i = n - window; i < n; ++i) ++counts[history[static_cast<size_t>(i)]];
  for (const auto& [token, count] : counts) {
    double& v = x[static_cast<size_t>(token)];
    v = v > 0 ? v / o.repeat_penalty : v * o.repeat_penalty;
    v -= count * o.frequency_penalty + o.presence_penalty;
  }
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return static_cast<float>(x[static_cast<size_t>(a)]) >
           static_cast<float>(x[static_cast<size_t>(b)]);
  });
  const auto weight = [&](int32_t id) {
    return std::exp((x[static_cast<size_t>(id)] - x[static_cast<size_t>(order[0])]) /
                    o.temperature);
  };
  if (o.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.top_k)));
  double total = 0, mass = 0;
  for (const int32_t id : order) total += weight(id);
  size_t kept = 0;
  while (kept < order.size() && mass < o.top_p * total) mass += weight(order[kept++]);
  if (o.top_p < 1) order.resize(kept);
  while (weight(order.back()) < o.min_p * (1 - 1e-9)) order.pop_back();
  total = 0;
  for (const int32_t id : order) total += weight(id);
  std::vector<std::pair<int32_t, double>> result;
  for (const int32_t id : order) {
    if (weight(id) > 0) result.push_back({id, weight(id) / total});
  }
  return result;
}

std::vector<SamplingOptions> filter_settings() {
  std::vector<SamplingOptions> all;
  for (const double t : {0.3, 1.0, 2.5}) {
    for (const int64_t k : {0, 1, 2, 40, 5000}) {
      for (const double p : {1.0, 0.999, 0.9, 0.3, 1e-6}) {
        for (const double m : {0.0, 0.02, 0.5, 1.0}) {
          SamplingOptions o;
          o.temperature = t, o.top_k = k, o.top_p = p, o.min_p = m;
          all.push_back(o);
        }
      }
    }
  }
  return all;
}

TEST(Sampler, FiltersLeaveWhatThePlainChainLeaves) {
  int64_t cut = 0, rows = 0;
  for (SamplingOptions o : filter_settings()) {
    o.logit_bias = {{4, 3.0}, {9, -std::numeric_limits<double>::infinity()}};
    o.repeat_penalty = 1.2, o.frequency_penalty = 0.1, o.presence_penalty = 0.3;
    o.repeat_last_n = 5;
    for (const int64_t vocab : {11, 1000}) {
      for (const double spread : {0.5, 6.0, 40.0}) {
        const auto row = random_row(vocab, static_cast<uint32_t>(rows++), spread);
        const std::vector<int32_t> history = {1, 2, 3, 3, 4, 3, 8};
        const auto wanted = plain_chain(row, history, o);
        Sampler sampler(o, vocab, choose_isa());
        Distribution found;
        ASSERT_TRUE(sampler.distribution(row, history, found));
        // Probabilities in float: a token whose mass ends within 1e-6 of top_p may fall on either
        // side, and one under 1e-9 may be missing.
        double difference = 0;
        for (const auto& [id, p] : wanted) difference += std::fabs(found.of(id) - p);
        const double sum =
            std::accumulate(found.probabilities.begin(), found.probabilities.end(), 0.0);
        ASSERT_NEAR(sum, 1, 1e-9);
        ASSERT_LT(difference, 2e-5)
            << "T " << o.temperature << " k " << o.top_k << " p " << o.top_p << " m " << o.min_p
            << " vocab " << vocab << " spread " << spread << " kept " << found.ids.size() << " of "
            << wanted.size();
        ASSERT_TRUE(std::is_sorted(found.ids.begin(), found.ids.end()));
        ASSERT_EQ(found.of(9), 0);
        cut += static_cast<int64_t>(found.ids.size()) < vocab - 1;
      }
    }
  }
  EXPECT_GT(cut, rows / 2);
  EXPECT_LT(cut, rows);
}

// A row that ends early is a row whose other tokens are banned.
TEST(Sampler, TakesRowsOfAPartOfTheVocabulary) {
  constexpr int64_t kVocab = 1000;
  constexpr size_t kPart = 333;
  const std::vector<int32_t> history{5, 900, 5, 332, 333, 7};
  std::vector<SamplingOptions> all(6);
  all[1].temperature = all[2].temperature = all[3].temperature = all[4].temperature = 0.9;
  all[2].top_k = 400;
  all[3].top_p = 0.7;
  all[4].min_p = 0.01;
  all[5].repeat_penalty = 1.3;
  all[5].frequency_penalty = 0.5;
  all[5].logit_bias = {{3, 2.0}, {999, 50.0}};
  for (const SamplingOptions& options : all) {
    Sampler sampler(options, kVocab, choose_isa());
    for (uint32_t seed = 0; seed < 20; ++seed) {
      std::vector<float> row = random_row(kVocab, seed, 2);
      const auto part = sampler.choose(std::span(row).first(kPart), history, NoiseStream::kToken);
      std::fill(row.begin() + kPart, row.end(), -kInf);
      const auto whole = sampler.choose(row, history, NoiseStream::kToken);
      ASSERT_TRUE(part);
      EXPECT_LT(*part, static_cast<int32_t>(kPart));
      EXPECT_EQ(part, whole) << seed;
      // Nothing of the short row is left in the sampler.
      EXPECT_EQ(sampler.choose(random_row(kVocab, seed, 2), history, NoiseStream::kToken),
                Sampler(options, kVocab, choose_isa())
                    .choose(random_row(kVocab, seed, 2), history, NoiseStream::kToken));
    }
  }
}

TEST(Sampler, CutsTiesByTheLowerId) {
  SamplingOptions o;
  o.temperature = 1;
  o.top_k = 3;
  const std::vector<float> row = {1, 5, 2, 5, 5, 5, 2};
  Sampler by_k(o, 7, choose_isa());
  Distribution found;
  ASSERT_TRUE(by_k.distribution(row, {}, found));
  EXPECT_EQ(found.ids, (std::vector<int32_t>{1, 3, 4}));
  o.top_k = 0;
  o.top_p = 0.4;
  Sampler by_p(o, 7, choose_isa());  // each 5 holds about 0.23
  ASSERT_TRUE(by_p.distribution(row, {}, found));
  EXPECT_EQ(found.ids, (std::vector<int32_t>{1, 3}));
  o.temperature = 0;
  Sampler greedy(o, 7, choose_isa());
  EXPECT_EQ(greedy.choose(row, {}, NoiseStream::kToken), 1);
}

TEST(Sampler, SkipsOnlyTokensThatCannotWin) {
  int64_t not_best = 0;
  std::vector<int32_t> history;
  for (uint32_t trial = 0; trial < 400; ++trial) {
    const int64_t vocab = trial % 7 == 0 ? 4001 : 130 + trial % 4;
    std::vector<float> row = random_row(vocab, trial, trial % 3 == 0 ? 0.1 : 12);
    if (trial % 5 == 0) row[3] = -kInf;
    SamplingOptions o;
    o.temperature = trial % 4 == 0 ? 0.05 : trial % 4 == 1 ? 1 : trial % 4 == 2 ? 3 : 1e-9;
    o.seed = trial * uint64_t{0x123456789}, o.choice = trial % 3;
    history.resize(trial);
    const double t = std::max(o.temperature, 1e-6);
    int32_t best = -1;
    double best_value = 0;
    for (int64_t i = 0; i < vocab; ++i) {
      const NoiseKey key{o.seed, o.choice, trial, NoiseStream::kDraft};
      const double value =
          row[static_cast<size_t>(i)] / t + gumbel(noise_bits_of(key, static_cast<uint32_t>(i)));
      if (best < 0 || value > best_value) best = static_cast<int32_t>(i), best_value = value;
    }
    Sampler sampler(o, vocab, choose_isa());
    ASSERT_EQ(sampler.choose(row, history, NoiseStream::kDraft), best) << trial;
    not_best += best != std::max_element(row.begin(), row.end()) - row.begin();
  }
  EXPECT_GT(not_best, 100);
}

// Pieces of rows in any order on any threads, of several rows at once.
TEST(Sampler, ScansDrawWhatChooseDraws) {
  int64_t not_best = 0, none = 0;
  std::mt19937 random(3);
  for (uint32_t trial = 0; trial < 600; ++trial) {
    const int64_t vocab = trial % 7 == 0 ? 4001 : 130 + trial % 4;
    constexpr int64_t kRows = 3;
    SamplingOptions o;
    o.temperature = std::array{0.0, 0.05, 1.0, 3.0, 1e-9}[trial % 5];
    o.seed = trial * uint64_t{0x123456789}, o.choice = trial % 3;
    Sampler sampler(o, vocab, choose_isa());
    ASSERT_TRUE(sampler.can_scan());
    std::vector<std::vector<float>> rows;
    for (uint32_t i = 0; i < kRows; ++i) {
      rows.push_back(random_row(vocab, trial * kRows + i, trial % 3 == 0 ? 0.1 : 12));
      std::vector<float>& row = rows.back();
      if (trial % 2 == 0) {  // equal ones: the lowest id
        for (float& x : row) x = std::round(x);
      }
      if (trial % 6 == 0) std::fill(row.begin() + 20, row.end(), -kInf);
      const size_t at = random() % row.size();
      if (trial % 11 == i) row[at] = kInf;
      if (trial % 13 == i) row[at] = std::numeric_limits<float>::quiet_NaN();
      if (trial % 17 == i) std::fill(row.begin(), row.end(), -kInf);
    }
    RowScan scan(sampler.draw_of_rows(), kRows);
    for (const int threads : {1, 4}) {
      scan.expect(kRows, sampler.key(trial, NoiseStream::kToken));
      scan.begin(threads);
      std::vector<int64_t> pieces;
      for (int64_t first = 0; first < vocab; first += 64) pieces.push_back(first);
      std::shuffle(pieces.begin(), pieces.end(), random);
      for (const int64_t first : pieces) {
        for (int64_t i = 0; i < kRows; ++i) {
          const auto size = static_cast<size_t>(std::min<int64_t>(64, vocab - first));
          scan.read(
              static_cast<int>(random() % static_cast<unsigned>(threads)), i, first,
              std::span(rows[static_cast<size_t>(i)]).subspan(static_cast<size_t>(first), size));
        }
      }
      std::vector<int32_t> history(trial);
      for (size_t i = 0; i < kRows; ++i, history.push_back(0)) {
        const auto expected =
            sampler.choose(std::span<const float>(rows[i]), history, NoiseStream::kToken);
        ASSERT_EQ(scan.token(static_cast<int64_t>(i)), expected) << trial << " row " << i;
        none += !expected;
        not_best += expected &&
                    *expected != std::max_element(rows[i].begin(), rows[i].end()) - rows[i].begin();
      }
    }
  }
  EXPECT_GT(not_best, 100);
  EXPECT_GT(none, 100);
}

/// 40000 draws against the plain chain's probabilities. Power: a shift of 0.01 of the mass between
/// two tokens of 0.1 each gives a non-centrality of 80 on 11 degrees, missed with probability <
/// 1e-4.
TEST(Sampler, DrawsFromTheDistributionOfTheChain) {
  const auto row = random_row(12, 5, 4);
  for (const auto& [top_k, top_p, min_p] :
       {std::tuple{int64_t{0}, 1.0, 0.0}, {8, 1.0, 0.0}, {0, 0.9, 0.0}, {0, 1.0, 0.1}}) {
    SamplingOptions o;
    o.temperature = 1.1, o.top_k = top_k, o.top_p = top_p, o.min_p = min_p;
    std::vector<double> probabilities(12);
    for (const auto& [id, p] : plain_chain(row, {}, o)) probabilities[static_cast<size_t>(id)] = p;
    for (const bool by_seed : {false, true}) {  // over positions of one seed, over seeds
      std::vector<int64_t> counts(12);
      std::vector<int32_t> history;
      for (uint32_t i = 0; i < 40000; ++i) {
        o.seed = by_seed ? i : 9;
        if (!by_seed) history.push_back(0);
        Sampler sampler(o, 12, choose_isa());
        ++counts[static_cast<size_t>(*sampler.choose(row, history, NoiseStream::kToken))];
      }
      const ChiSquare chi = chi_square(counts, probabilities);
      EXPECT_GE(chi.degrees, 2);
      EXPECT_LT(chi.statistic, chi.limit());
    }
  }
}

TEST(Sampler, RefusesUnusableRows) {
  for (const double t : {0.0, 1.0}) {
    SamplingOptions o;
    o.temperature = t;
    o.logit_bias = {{2, -static_cast<double>(kInf)}};
    Sampler sampler(o, 4, choose_isa());
    Distribution out;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float bad : {nan, kInf}) {
      for (size_t at = 0; at < 4; ++at) {  // a ban does not hide it
        std::vector<float> row = {1, 2, 3, 4};
        row[at] = bad;
        EXPECT_FALSE(sampler.choose(row, {}, NoiseStream::kToken).has_value());
        EXPECT_FALSE(sampler.distribution(row, {}, out));
      }
    }
    const std::vector<float> banned = {-kInf, -kInf, 3, -kInf};
    EXPECT_FALSE(sampler.choose(banned, {}, NoiseStream::kToken).has_value());
    const std::vector<float> one = {-kInf, -kInf, 3, -7};
    EXPECT_EQ(sampler.choose(one, {}, NoiseStream::kToken), 3);
  }
}

TEST(Sampler, DrawFollowsItsWeights) {
  SamplingOptions o;
  o.temperature = 1;
  const std::vector<int32_t> ids = {2, 5, 6, 9};
  const std::vector<double> weights = {0.002, 0, 0.006, 0.012};
  std::vector<int64_t> counts(4);
  Sampler sampler(o, 10, choose_isa());
  for (int64_t position = 0; position < 20000; ++position) {
    const int32_t id = sampler.draw(ids, weights, position, NoiseStream::kResidual);
    ++counts[static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin())];
  }
  const ChiSquare chi = chi_square(counts, {0.1, 0, 0.3, 0.6});
  EXPECT_LT(chi.statistic, chi.limit());
}

TEST(Sampler, PenaltiesOfTheAnswerLeaveThePromptAlone) {
  SamplingOptions o;
  o.presence_penalty = 1;
  o.frequency_penalty = 0.25;
  o.penalties_of_answer = true;
  o.repeat_last_n = 0;  // a matter of the repeat penalty's window
  const std::vector<int32_t> history = {0, 0, 0, 1, 1, 2};  // the prompt: the first three
  Sampler sampler(o, 4, choose_isa(), /*answer_begin=*/3);
  // 1 loses 1 + 2 * 0.25, 2 loses 1.25, 0 nothing.
  EXPECT_EQ(sampler.choose(std::vector<float>{1.4f, 3, 2.7f, 0}, history, NoiseStream::kToken), 1);
  EXPECT_EQ(sampler.choose(std::vector<float>{1.6f, 3, 2.7f, 0}, history, NoiseStream::kToken), 0);
  EXPECT_EQ(sampler.choose(std::vector<float>{1.3f, 3, 2.9f, 0}, history, NoiseStream::kToken), 2);
}

}  // namespace
}  // namespace orthrus
