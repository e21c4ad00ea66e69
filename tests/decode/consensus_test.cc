#include "decode/consensus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "decode/chi_square.h"
#include "decode/fake_model.h"

namespace orthrus {
namespace {

std::vector<double> softmax(const std::vector<float>& x, double t) {
  double max = x[0], sum = 0;
  for (const float v : x) max = std::max<double>(max, v);
  std::vector<double> p;
  for (const float v : x) sum += (p.emplace_back(std::exp((v - max) / t)));
  for (double& v : p) v /= sum;
  return p;
}

TEST(KlDivergence, AgreesWithItsDefinition) {
  std::vector<float> scratch;
  const RowOps& ops = row_ops(choose_isa());
  for (uint32_t seed = 0; seed < 50; ++seed) {
    FakeModel fake(200, 8, 0, 1 + seed % 5);
    const std::vector<float> a = fake.ar_logits(std::vector<int32_t>{static_cast<int32_t>(seed)});
    const std::vector<float> b =
        fake.ar_logits(std::vector<int32_t>{static_cast<int32_t>(seed), 3});
    const auto p = softmax(a, 1), q = softmax(b, 1);
    double exact = 0;
    for (size_t i = 0; i < p.size(); ++i) exact += p[i] * std::log(p[i] / q[i]);
    EXPECT_NEAR(kl_divergence(a, b, ops, scratch), exact, 1e-5 * (1 + exact));
    EXPECT_EQ(kl_divergence(a, a, ops, scratch), 0);
  }
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> all = {1, 1}, one = {1, -inf};
  EXPECT_NEAR(kl_divergence(one, all, ops, scratch), std::log(2.0), 1e-6);
  EXPECT_EQ(kl_divergence(all, one, ops, scratch), inf);
}

/// Draft and AR rows of the tests of distributions: near each other, and almost disjoint.
struct Rows {
  std::vector<float> ar, draft;
};
std::vector<Rows> row_pairs() {
  return {{{0.5f, 1, -1, 0.2f, 1.5f, -2}, {0.7f, 0.8f, -1.2f, 0.5f, 1.1f, -1}},
          {{3, -3, 0, 0.5f, -1, 2}, {-3, 4, 0, -2, 3.5f, -1}}};
}

struct Tally {
  std::vector<int64_t> counts = std::vector<int64_t>(6);
  int64_t accepted = 0;
};

Tally judge_many(const Rows& rows, GenerateOptions options, int trials) {
  Tally tally;
  const std::vector<int32_t> history = {1, 2, 3};
  for (int i = 0; i < trials; ++i) {
    options.sampling.seed = static_cast<uint64_t>(i);
    Sampler sampler(options.sampling, 6, choose_isa());
    ConsensusJudge judge(options, sampler, 6, choose_isa());
    judge.reserve(1);
    const int32_t draft = *judge.draft({rows.draft}, history);
    judge.keep(rows.draft, 1);
    const auto verdict = judge.judge(0, draft, {rows.ar}, history);
    EXPECT_EQ(verdict->accepted && verdict->token != draft, false);
    tally.accepted += verdict->accepted;
    ++tally.counts[static_cast<size_t>(verdict->token)];
  }
  return tally;
}

/// 40000 draws a case. Power: 0.01 of the mass moved between two tokens of 0.15 gives a
/// non-centrality of 53 on 5 degrees; the test misses it with probability < 0.01. The draft's own
/// distribution in the AR one's place is told apart with certainty (shown below).
TEST(Consensus, ExactAndRejectionBothDrawFromTheArDistribution) {
  const int trials = 40000;
  for (const Rows& rows : row_pairs()) {
    const double t = 0.9;
    const auto p = softmax(rows.ar, t), q = softmax(rows.draft, t);
    double distance = 0;
    for (size_t i = 0; i < p.size(); ++i) distance += std::fabs(p[i] - q[i]) / 2;
    for (const Consensus consensus : {Consensus::kExact, Consensus::kRejection}) {
      GenerateOptions options;
      options.sampling.temperature = t;
      options.consensus = consensus;
      const Tally tally = judge_many(rows, options, trials);
      const ChiSquare chi = chi_square(tally.counts, p);
      EXPECT_LT(chi.statistic, chi.limit());
      const ChiSquare wrong = chi_square(tally.counts, q);
      EXPECT_GT(wrong.statistic, 3 * wrong.limit());
      const double rate = static_cast<double>(tally.accepted) / trials;
      const double error = 4 * std::sqrt(0.25 / trials);
      if (consensus == Consensus::kRejection) {
        EXPECT_NEAR(rate, 1 - distance, error);
      } else {
        EXPECT_GE(rate, (1 - distance) / (1 + distance) - error);
        EXPECT_LE(rate, 1 - distance + error);
      }
      std::printf("total variation %.3f: %s accepts %.3f, chi-square %.1f on %d degrees\n",
                  distance, consensus == Consensus::kExact ? "exact" : "rejection", rate,
                  chi.statistic, chi.degrees);
    }
  }
}

TEST(Consensus, RejectionKeepsToTheFilteredDistribution) {
  GenerateOptions options;
  options.sampling.temperature = 0.9;
  options.sampling.top_k = 2;
  options.consensus = Consensus::kRejection;
  for (const Rows& rows : row_pairs()) {
    Sampler sampler(options.sampling, 6, choose_isa());
    Distribution kept;
    ASSERT_TRUE(sampler.distribution(rows.ar, {}, kept));
    std::vector<double> p(6);
    for (size_t i = 0; i < kept.ids.size(); ++i) {
      p[static_cast<size_t>(kept.ids[i])] = kept.probabilities[i];
    }
    const ChiSquare chi = chi_square(judge_many(rows, options, 20000).counts, p);
    EXPECT_LT(chi.statistic, chi.limit());
  }
}

/// The same through whole generations: the joint distribution of the second and third token.
/// 30000 runs on 16 cells.
TEST(Consensus, WholeRunsDrawFromTheArDistribution) {
  for (const double noise : {0.5, 6.0}) {
    FakeModel fake(4, 4, noise, 1.5);
    const std::vector<int32_t> prompt = {1, 0, 2};
    std::vector<double> joint(16);
    const auto first = softmax(fake.ar_logits(prompt), 1);
    for (int32_t a = 0; a < 4; ++a) {
      std::vector<int32_t> tokens = prompt;
      tokens.push_back(a);
      const auto second = softmax(fake.ar_logits(tokens), 1);
      for (int32_t b = 0; b < 4; ++b) {
        tokens.push_back(b);
        const auto third = softmax(fake.ar_logits(tokens), 1);
        tokens.pop_back();
        for (int32_t c = 0; c < 4; ++c) {
          joint[static_cast<size_t>(4 * b + c)] += first[static_cast<size_t>(a)] *
                                                   second[static_cast<size_t>(b)] *
                                                   third[static_cast<size_t>(c)];
        }
      }
    }
    for (const Consensus consensus : {Consensus::kExact, Consensus::kRejection}) {
      std::vector<int64_t> counts(16);
      FakeRun run(fake, prompt);
      run.options.consensus = consensus;
      run.options.sampling.temperature = 1;
      run.options.max_new_tokens = 3;
      run.options.draft_max = 3;
      for (uint64_t seed = 0; seed < 30000; ++seed) {
        run.options.sampling.seed = seed;
        run.table.set_length(0);
        const auto ids = run.generate().token_ids;
        ++counts[static_cast<size_t>(4 * ids[1] + ids[2])];
      }
      const ChiSquare chi = chi_square(counts, joint);
      EXPECT_GT(chi.degrees, 8);
      EXPECT_LT(chi.statistic, chi.limit()) << "noise " << noise;
    }
  }
}

TEST(Consensus, RejectionRepeatsWithTheSeedAndIsGreedyAtZero) {
  FakeModel fake(40, 8, 0.7);
  const auto run_with = [&](double t, Consensus consensus, int64_t draft_max, uint64_t seed) {
    FakeRun run(fake, {3, 1, 4});
    run.options.consensus = consensus;
    run.options.sampling.temperature = t;
    run.options.sampling.seed = seed;
    run.options.max_new_tokens = 60;
    run.options.draft_max = draft_max;
    return run.generate();
  };
  const auto a = run_with(1, Consensus::kRejection, 7, 4);
  EXPECT_EQ(a.token_ids, run_with(1, Consensus::kRejection, 7, 4).token_ids);
  EXPECT_NE(a.token_ids, run_with(1, Consensus::kRejection, 7, 5).token_ids);
  // Automatic means the full block here.
  EXPECT_EQ(a.token_ids, run_with(1, Consensus::kRejection, -1, 4).token_ids);
  EXPECT_EQ(run_with(0, Consensus::kRejection, 7, 4).token_ids,
            run_with(0, Consensus::kExact, 0, 4).token_ids);
}

TEST(Consensus, KlAcceptsUnderTheThreshold) {
  FakeModel fake(40, 8, 0.6);
  const auto run_with = [&](double threshold, Consensus consensus) {
    FakeRun run(fake, {3, 1, 4});
    run.options.consensus = consensus;
    run.options.consensus_threshold = threshold;
    run.options.consensus_stats = true;
    run.options.max_new_tokens = 300;
    return run.generate();
  };
  const auto exact = run_with(0.05, Consensus::kExact);
  const auto strict = run_with(0, Consensus::kKl);
  EXPECT_EQ(strict.token_ids, exact.token_ids);
  EXPECT_EQ(strict.conflict_rate, 1);
  EXPECT_EQ(strict.kl_mean, exact.kl_mean);
  const auto all = run_with(1e9, Consensus::kKl);
  EXPECT_EQ(all.accepted, all.drafted);
  EXPECT_EQ(all.conflict_rate, 0);
  EXPECT_NE(all.token_ids, exact.token_ids);
  const auto some = run_with(0.4, Consensus::kKl);
  EXPECT_GT(some.accepted, exact.accepted);
  EXPECT_GT(*exact.kl_mean, 0);
  EXPECT_GT(*exact.conflict_rate, 0);
  EXPECT_LT(*exact.conflict_rate, 1);
}

TEST(Consensus, JudgesUpToTheFirstRefusal) {
  FakeModel fake(6, 8);
  GenerateOptions options;
  options.consensus_stats = true;
  options.consensus_threshold = 0.5;
  Sampler sampler(options.sampling, 6, choose_isa());
  ConsensusJudge judge(options, sampler, 6, choose_isa());
  EXPECT_FALSE(judge.kl_mean().has_value());
  judge.reserve(2);
  const std::vector<float> same = {0, 0, 3, 0, 0, 0}, other = {5, 0, 0, 0, 0, 0};
  std::vector<float> drafts = same;
  drafts.insert(drafts.end(), other.begin(), other.end());
  judge.keep(drafts, 2);
  const std::vector<int32_t> history = {1};
  EXPECT_TRUE(judge.judge(0, 2, {same}, history)->accepted);
  EXPECT_EQ(judge.conflict_rate(), 0);
  const auto refused = judge.judge(1, 0, {same}, history);
  EXPECT_FALSE(refused->accepted);
  EXPECT_EQ(refused->token, 2);
  EXPECT_EQ(judge.conflict_rate(), 0.5);
  std::vector<float> scratch;
  EXPECT_DOUBLE_EQ(*judge.kl_mean(),
                   kl_divergence(same, other, row_ops(choose_isa()), scratch) / 2);
}

}  // namespace
}  // namespace orthrus
