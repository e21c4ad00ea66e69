#include "decode/draft_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/counter_rng.h"
#include "base/median.h"

namespace orthrus {
namespace {

constexpr int64_t kBlock = 32;
constexpr double kGreedy = 0;

/// A machine whose passes take a_fixed + rows * a_row plain steps, more or less.
struct Machine {
  const char* name;
  double per_row;        // share of a plain step that each further row costs
  double diffusion = 1;  // the diffusion pass against the AR pass
};

/// A text whose drafts are accepted with this probability at place i, given those before.
struct Text {
  const char* name;
  std::function<double(int64_t place, int64_t token)> acceptance;
};

class Simulation {
 public:
  Simulation(const Machine& machine, double noise) : machine_(machine), noise_(noise) {}

  double seconds(const PassShape& shape) const {
    const int64_t rows = shape.ar_rows + shape.diffusion_rows;
    return 0.01 * (1 + machine_.per_row * static_cast<double>(rows - 1)) *
           (shape.diffusion_rows > 0 ? machine_.diffusion : 1);
  }
  /// Time of `tokens` tokens against plain AR on the same machine: 1 is as fast.
  double run(CostModel& cost, const Text& text, int64_t tokens, uint32_t seed) {
    DraftLength length(cost, kBlock, kGreedy);
    double spent = 0;
    uint32_t draw = 0;
    int64_t done = 0;
    cycles_ = drafted_ = 0;
    const auto uniform = [&] { return open_uniform(philox4x32({draw++, seed, 0, 0}, {6, 6})[0]); };
    const auto pass = [&](const PassShape& shape) {
      const double exact = seconds(shape);
      spent += exact;  // the noise is in what is measured, not in what is compared
      double measured = exact * (1 + noise_ * (2 * uniform() - 1));
      if (noise_ > 0 && uniform() < 0.02) measured *= 5;
      cost.observe(shape, measured);
    };
    while (done < tokens) {
      const int64_t k = length.choose({.most = std::min<int64_t>(tokens - done, 4096) - 1,
                                       .remaining = tokens - done,
                                       .context = done,
                                       .companions = 1});
      EXPECT_LE(k, std::min(tokens - done - 1, kBlock - 1));
      int64_t accepted = 0;
      if (k > 0) {
        pass({.ar_rows = 0, .diffusion_rows = k + 1, .logit_rows = k, .context_tokens = done});
      }
      while (accepted < k && uniform() < text.acceptance(accepted, done)) ++accepted;
      pass({.ar_rows = k + 1, .diffusion_rows = 0, .logit_rows = k + 1, .context_tokens = done});
      length.observe(k, accepted);
      done += accepted + 1;
      ++cycles_;
      drafted_ += k;
    }
    const PassShape one{
        .ar_rows = 1, .diffusion_rows = 0, .logit_rows = 1, .context_tokens = 0, .attended = 0};
    return spent / (seconds(one) * static_cast<double>(tokens));
  }
  /// The best relative time that any fixed length has.
  double best_fixed(const Text& text) const {
    double best = 1;
    for (int64_t k = 1; k < kBlock; ++k) {
      double expected = 1, reached = 1;
      for (int64_t i = 0; i < k; ++i) expected += reached *= text.acceptance(i, 0);
      const PassShape draft{.ar_rows = 0,
                            .diffusion_rows = k + 1,
                            .logit_rows = k,
                            .context_tokens = 0,
                            .attended = 0};
      const PassShape verify{.ar_rows = k + 1,
                             .diffusion_rows = 0,
                             .logit_rows = k + 1,
                             .context_tokens = 0,
                             .attended = 0};
      best = std::min(best, (seconds(draft) + seconds(verify)) / (0.01 * expected));
    }
    return best;
  }
  double drafts_per_cycle() const {
    return static_cast<double>(drafted_) / static_cast<double>(cycles_);
  }

 private:
  Machine machine_;
  double noise_;
  int64_t cycles_ = 0, drafted_ = 0;
};

CostModel new_cost_model() {
  ModelCost model;  // rates of a machine that is not the simulated one: the rest must be learned
  model.shared = {.bytes = 7e7, .f32_macs = 3e7, .int8_macs = 0};
  model.lm_head = {.bytes = 2e7, .f32_macs = 1e7, .int8_macs = 0};
  return CostModel(model, {.bytes_per_second = 1.2e10, .f32_flops = 1e11, .int8_ops = 1e11});
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {{"rows for free", 0.005},
                                           {"bandwidth", 0.03},
                                           {"balanced", 0.12},
                                           {"compute", 0.5},
                                           {"slow drafts", 0.05, 1.6}};
  return all;
}
const std::vector<Text>& texts() {
  static const std::vector<Text> all = {
      {"copied", [](int64_t, int64_t) { return 0.97; }},
      {"arithmetic",
       [](int64_t i, int64_t) { return std::max(0.9 - 0.02 * static_cast<double>(i), 0.3); }},
      {"prose", [](int64_t i, int64_t) { return i == 0 ? 0.65 : 0.45; }},
      {"high entropy", [](int64_t, int64_t) { return 0.2; }},
      {"untrained", [](int64_t, int64_t) { return 0.0; }}};
  return all;
}

/// The cost model and the shared profile live as long as the program: eleven requests in a row, of
/// which the first meet a model that knows nothing.
TEST(DraftLength, IsNearTheBestLengthAndNeverSlowerThanAr) {
  for (const double noise : {0.0, 0.2}) {
    for (const Machine& machine : machines()) {
      for (const Text& text : texts()) {
        for (const int64_t tokens : {64, 512}) {
          Simulation simulation(machine, noise);
          CostModel cost = new_cost_model();
          std::vector<double> times;
          for (uint32_t request = 0; request < 11; ++request) {
            times.push_back(simulation.run(cost, text, tokens, request));
          }
          const double worst = *std::max_element(times.begin(), times.end());
          const double best = simulation.best_fixed(text);
          std::printf(
              "%-14s %-13s noise %.1f tokens %3d: median %.3f worst %.3f best fixed %.3f, %.1f "
              "drafts\n",
              machine.name, text.name, noise, static_cast<int>(tokens), median(times), worst, best,
              simulation.drafts_per_cycle());
          EXPECT_LE(median(times), 1.03);
          EXPECT_LE(median(times), tokens == 512 ? best * 1.12 + 0.02 : best * 1.25 + 0.05);
          if (tokens == 512) {
            EXPECT_LE(worst, 1.05);
          }
        }
      }
    }
  }
}

/// The kind of text changes between requests and inside one.
TEST(DraftLength, FollowsTheTextItMeets) {
  const Machine machine{"bandwidth", 0.03};
  Simulation simulation(machine, 0.1);
  CostModel cost = new_cost_model();
  for (uint32_t i = 0; i < 5; ++i) simulation.run(cost, texts()[4], 512, i);
  // Learned that nothing is accepted; then drafts become good.
  const double turned = simulation.run(cost, texts()[0], 2000, 77);
  EXPECT_LT(turned, 2 * simulation.best_fixed(texts()[0]));
  for (uint32_t i = 0; i < 5; ++i) simulation.run(cost, texts()[0], 512, i + 10);
  EXPECT_LT(simulation.run(cost, texts()[4], 512, 99), 1.05);
  const Text halves{"halves",
                    [](int64_t, int64_t token) { return token % 1000 < 500 ? 0.95 : 0.05; }};
  const double mixed = simulation.run(cost, halves, 8000, 5);
  EXPECT_LT(mixed, 0.75);  // the good half alone would give about 0.62
}

TEST(DraftLength, TakesCompanionsAndLimitsIntoAccount) {
  CostModel cost = new_cost_model();
  const Machine machine{"balanced", 0.12};
  Simulation simulation(machine, 0);
  for (uint32_t i = 0; i < 3; ++i) simulation.run(cost, texts()[1], 512, i);
  const auto settled = [&](int64_t companions, int64_t most) {
    DraftLength length(cost, kBlock, kGreedy);
    for (int64_t rows = 1; rows <= kBlock; ++rows) {
      for (int i = 0; i < 12; ++i) {
        const int64_t all = rows * companions;
        const PassShape ar{.ar_rows = all,
                           .diffusion_rows = 0,
                           .logit_rows = all,
                           .context_tokens = 0,
                           .attended = 0};
        const PassShape diffusion{.ar_rows = 0,
                                  .diffusion_rows = all,
                                  .logit_rows = all,
                                  .context_tokens = 0,
                                  .attended = 0};
        PassShape both = diffusion;
        both.ar_rows = both.diffusion_rows = (all + 1) / 2;
        for (const PassShape& shape : {ar, diffusion, both}) {
          cost.observe(shape, simulation.seconds(shape));
        }
      }
    }
    return length.choose(
        {.most = most, .remaining = 1000, .context = 100, .companions = companions});
  };
  const int64_t alone = settled(1, 1000);
  EXPECT_GT(alone, 2);
  EXPECT_LT(settled(16, 1000), alone);  // rows are dear in a full pass
  EXPECT_LE(settled(1, 2), 2);
  EXPECT_EQ(settled(1, 0), 0);
}

// Hot requests that fail do not take the drafts from greedy ones.
TEST(DraftLength, RequestsStartFromOthersOfTheirTemperature) {
  CostModel cost = new_cost_model();
  for (int i = 0; i < 50; ++i) cost.acceptance(1.2).observe(3, 0);
  for (int i = 0; i < 50; ++i) cost.acceptance(0).observe(3, 3);
  const PassShape one{
      .ar_rows = 1, .diffusion_rows = 0, .logit_rows = 1, .context_tokens = 0, .attended = 0};
  for (int i = 0; i < 3; ++i) cost.observe(one, cost.predict(one));
  const auto first = [&](double temperature) {
    DraftLength length(cost, kBlock, temperature);
    return length.choose({.most = 100, .remaining = 100, .context = 0, .companions = 1});
  };
  EXPECT_GT(first(0), 0);
  EXPECT_EQ(first(1.2), 0);
  EXPECT_GT(first(0.7), 0);  // nothing is known: the drafts get a chance
}

/// Requests of one batch, which share every pass: some draft in it while others verify or take a
/// plain step. Returns the time against plain AR.
double run_batch(CostModel& cost, const Simulation& machine, size_t size, double accepted_share,
                 int64_t tokens, uint32_t seed) {
  const auto companions = static_cast<int64_t>(size);
  struct Request {
    DraftLength length;
    int64_t drafts = 0, done = 0;
    bool drafted = false;  // the coming pass verifies
  };
  std::vector<Request> requests;
  for (size_t i = 0; i < size; ++i) requests.push_back({DraftLength(cost, kBlock, kGreedy)});
  uint32_t draw = 0;
  double spent = 0;
  int64_t done = 0;
  while (done < companions * tokens) {
    PassShape shape;
    for (Request& r : requests) {
      const int64_t left = std::max<int64_t>(tokens - r.done, 1);
      if (!r.drafted) {
        r.drafts = r.length.choose({.most = std::min<int64_t>(left, kBlock) - 1,
                                    .remaining = left,
                                    .context = 0,
                                    .companions = companions});
      }
      r.drafted = r.drafts > 0 && !r.drafted;
      shape.add(r.drafted ? View::kDiffusion : View::kAr, r.drafts + 1, r.drafts + 1, 0);
    }
    shape.context_tokens = shape.attended = 0;
    spent += machine.seconds(shape);
    cost.observe(shape, machine.seconds(shape));
    for (Request& r : requests) {
      if (r.drafted) continue;
      int64_t accepted = 0;
      while (accepted < r.drafts &&
             open_uniform(philox4x32({draw++, seed, 0, 0}, {4, 4})[0]) < accepted_share) {
        ++accepted;
      }
      r.length.observe(r.drafts, accepted);
      r.drafts = 0;
      r.done += accepted + 1;
      done += accepted + 1;
    }
  }
  PassShape plain;
  plain.add(View::kAr, 1, 1, 0, companions);
  return spent * static_cast<double>(size) / (machine.seconds(plain) * static_cast<double>(done));
}

// What a batch loses by trying is bounded as a whole, not for each of its requests; also where
// passes that draft cost more than others, whatever else is in them.
TEST(DraftLength, BatchesAreNotSlowerThanArTogether) {
  for (const double diffusion : {1.0, 1.3}) {
    const Simulation machine({"bandwidth", 0.03, diffusion}, 0);
    for (const size_t size : {2, 16}) {
      CostModel poor = new_cost_model();
      for (uint32_t i = 0; i < 6; ++i) {
        const double time = run_batch(poor, machine, size, 0.05, 256, i);
        EXPECT_LE(time, i == 0 ? 1.08 : 1.03) << size << " requests, batch " << i;
        EXPECT_GE(poor.allowance().seconds, -0.02) << "a plain step takes half of that";
      }
      CostModel good = new_cost_model();
      for (uint32_t i = 0; i < 3; ++i) run_batch(good, machine, size, 0.95, 256, i);
      // With 16 requests the rows of good drafts cost what they earn.
      EXPECT_LT(run_batch(good, machine, size, 0.95, 256, 9), size == 2 ? 0.9 : 1.03) << size;
    }
  }
}

// A pass that leaves few rows to each request does not make its answer short.
TEST(DraftLength, TheStartMayLoseByWhatMayFollow) {
  const auto first = [](int64_t remaining) {
    CostModel cost = new_cost_model();
    for (int i = 0; i < 50; ++i) cost.acceptance(kGreedy).observe(3, 3);
    const PassShape one{
        .ar_rows = 1, .diffusion_rows = 0, .logit_rows = 1, .context_tokens = 0, .attended = 0};
    for (int i = 0; i < 3; ++i) cost.observe(one, cost.predict(one));
    DraftLength length(cost, kBlock, kGreedy);
    return length.choose({.most = 3, .remaining = remaining, .context = 0, .companions = 1});
  };
  EXPECT_GT(first(1000), 0);
  EXPECT_EQ(first(4), 0);
}

TEST(AcceptanceProfile, EstimatesTheRatePerPlace) {
  AcceptanceProfile profile(0.99);
  uint32_t draw = 0;
  const double truth[] = {0.9, 0.5, 0.7};
  for (int cycle = 0; cycle < 2000; ++cycle) {
    int64_t accepted = 0;
    while (accepted < 3 &&
           open_uniform(philox4x32({draw++, 0, 0, 0}, {1, 8})[0]) < truth[accepted]) {
      ++accepted;
    }
    profile.observe(3, accepted);
  }
  for (int64_t place = 0; place < 3; ++place) {
    EXPECT_NEAR(profile.rates()[static_cast<size_t>(place)], truth[place], 0.12);
  }
  // A new request leans on it, and a failing one trusts no place.
  AcceptanceProfile request(0.96);
  EXPECT_EQ(request.rates(profile.rates()), profile.rates());
  for (int cycle = 0; cycle < 10; ++cycle) request.observe(3, 0);
  EXPECT_LT(request.rates(profile.rates())[0], 0.3);
  EXPECT_LT(request.rates(profile.rates())[2], 0.35);
  profile.observe(500, 500);  // beyond the last place kept
}

}  // namespace
}  // namespace orthrus
