#include "cli/bench_cases.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

constexpr int64_t kShortContext = 256;
constexpr int64_t kBlocks[] = {2, 4, 8, 16, 32};
/// A case shorter than this is run several times in a row, up to kMostRuns, and averaged.
constexpr double kLeastSeconds = 0.02;
constexpr double kMostRuns = 20;

template <typename Fn>
double time_of(Fn&& fn) {
  const double start = monotonic_seconds();
  fn();
  return monotonic_seconds() - start;
}

/// Seconds of the two passes of a cycle, draft and verify.
double passes_of_cycle(BenchSequence& sequence, int64_t block, int64_t context) {
  return time_of([&] {
    sequence.diffusion_pass(block, context);
    sequence.ar_pass(block, context, block);
  });
}

class CaseList {
 public:
  CaseList(const Model& model, MatmulPass& matmul, BenchSequence& sequence,
           const std::vector<std::string>& names, int64_t long_context)
      : model_(model),
        matmul_(matmul),
        sequence_(sequence),
        names_(names),
        long_context_(long_context) {}

  std::vector<BenchCase> make() {
    for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64}) add_rows(rows);
    for (const int64_t context : {kShortContext, long_context_}) add_decode(context);
    for (const int64_t rows : {128, 512}) add_prefill(rows);
    for (const int64_t rows : {1, 4, 16, 64}) add_attention(rows, long_context_);
    add_other(kShortContext);
    if (model_.has_diffusion()) {
      for (const int64_t context : {kShortContext, long_context_}) {
        for (const int64_t block : kBlocks) add_dual(block, context);
      }
      for (const int64_t block : kBlocks) add_cycle(block, kShortContext);
    }
    return std::move(cases_);
  }

 private:
  bool wanted(const char* name, int64_t end_position) const {
    return end_position <= model_.config.max_position_embeddings &&
           (names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end());
  }

  PassWork work(View view, int64_t rows, int64_t context, int64_t logit_rows) const {
    return pass_work(model_, sequence_.layout(), view, rows, context, logit_rows);
  }

  void add_rows(int64_t rows) {
    if (!wanted("rows", 0)) return;
    cases_.push_back(
        {"rows", rows, std::nullopt, {matmul_work(model_, rows)}, [this_ = &matmul_, rows] {
           return time_of([&] { this_->run(rows); });
         }});
  }

  void add_decode(int64_t context) {
    if (!wanted("decode", context + 1)) return;
    BenchSequence& sequence = sequence_;
    cases_.push_back({"decode", 1, context, {work(View::kAr, 1, context, 1)}, [&sequence, context] {
                        return time_of([&] { sequence.ar_pass(1, context, 1); });
                      }});
  }

  void add_prefill(int64_t rows) {
    if (!wanted("prefill", rows)) return;
    BenchSequence& sequence = sequence_;
    cases_.push_back({"prefill", rows, 0, {work(View::kAr, rows, 0, 1)}, [&sequence, rows] {
                        return time_of([&] { sequence.ar_pass(rows, 0, 1); });
                      }});
  }

  void add_attention(int64_t rows, int64_t context) {
    if (!wanted("attention", context + rows)) return;
    BenchSequence& sequence = sequence_;
    cases_.push_back({"attention",
                      rows,
                      context,
                      {attention_work(model_, sequence_.layout(), rows, context)},
                      [&sequence, rows, context] {
                        return time_of([&] { sequence.attention_pass(rows, context); });
                      }});
  }

  /// Everything of a one-row step besides matmul and attention. The three times lie close
  /// together, so that a slow spell of the machine cancels out.
  void add_other(int64_t context) {
    if (!wanted("other", context + 1)) return;
    BenchSequence& sequence = sequence_;
    MatmulPass& matmul = matmul_;
    cases_.push_back({"other", 1, context, {}, [&sequence, &matmul, context] {
                        const double step = time_of([&] { sequence.ar_pass(1, context, 1); });
                        return step - time_of([&] { matmul.run(1); }) -
                               time_of([&] { sequence.attention_pass(1, context + 1); });
                      }});
  }

  /// A two-pass cycle: draft, then verify.
  void add_dual(int64_t block, int64_t context) {
    if (!wanted("dual", context + block) || block > model_.config.block_size) return;
    BenchSequence& sequence = sequence_;
    cases_.push_back(
        {"dual",
         block,
         context,
         {work(View::kDiffusion, block, context, block - 1),
          work(View::kAr, block, context, block)},
         [&sequence, block, context] { return passes_of_cycle(sequence, block, context); }});
  }

  /// What a cycle takes beyond its two passes: planning, drawing tokens, consensus, bookkeeping.
  void add_cycle(int64_t block, int64_t context) {
    if (!wanted("cycle", context + block) || block > model_.config.block_size) return;
    BenchSequence& sequence = sequence_;
    cases_.push_back({"cycle", block, context, {}, [&sequence, block, context] {
                        const double passes = passes_of_cycle(sequence, block, context);
                        return sequence.cycle_seconds(block, context) - passes;
                      }});
  }

  const Model& model_;
  MatmulPass& matmul_;
  BenchSequence& sequence_;
  const std::vector<std::string>& names_;
  const int64_t long_context_;
  std::vector<BenchCase> cases_;
};

double limit_seconds(const std::vector<PassWork>& passes, const MachineLimits& machine) {
  double seconds = 0;
  for (const PassWork& pass : passes) {
    seconds += std::max(pass.bytes / (1e9 * machine.read_gbps),
                        pass.f32_ops / (1e9 * machine.fma_gflops) +
                            pass.int8_ops / (1e9 * machine.int8_gops) +
                            (pass.bf16_ops > 0 ? pass.bf16_ops / (1e9 * machine.bf16_gflops) : 0));
  }
  return seconds;
}

/// Median of every rate.
MachineLimits typical(const std::vector<MachineLimits>& probes) {
  const auto median_of = [&](double MachineLimits::*rate) {
    std::vector<double> values;
    for (const MachineLimits& probe : probes) values.push_back(probe.*rate);
    return median(std::move(values));
  };
  MachineLimits limits = probes.front();
  limits.read_gbps = median_of(&MachineLimits::read_gbps);
  limits.fma_gflops = median_of(&MachineLimits::fma_gflops);
  limits.int8_gops = median_of(&MachineLimits::int8_gops);
  limits.bf16_gflops = median_of(&MachineLimits::bf16_gflops);
  return limits;
}

/// times: of every repetition, each of which began and ended with one of the probes.
BenchResult summarize(const BenchCase& c, const std::vector<double>& times,
                      const std::vector<MachineLimits>& probes) {
  BenchResult result;
  result.bench_case = &c;
  result.seconds = median(times);
  result.least = *std::min_element(times.begin(), times.end());
  result.most = *std::max_element(times.begin(), times.end());
  if (c.passes.empty()) return result;
  PassWork total;
  for (const PassWork& pass : c.passes) {
    total.bytes += pass.bytes;
    total.f32_ops += pass.ops();
  }
  result.gbps = 1e-9 * total.bytes / result.seconds;
  result.gflops = 1e-9 * total.ops() / result.seconds;
  std::vector<double> limits, ratios;
  for (size_t rep = 0; rep < times.size(); ++rep) {
    limits.push_back(limit_seconds(c.passes, better(probes[rep], probes[rep + 1])));
    ratios.push_back(times[rep] / limits.back());
  }
  result.limit_seconds = median(std::move(limits));
  result.ratio_to_limit = median(std::move(ratios));
  return result;
}

/// The case that ratio_to_one_row of `c` refers to; null where it did not run.
const BenchResult* one_row_of(const BenchCase& c, const std::vector<BenchResult>& results) {
  const bool rows = c.name == "rows";
  const int64_t context = std::max(c.context.value_or(0), kShortContext);
  for (const BenchResult& result : results) {
    const BenchCase& other = *result.bench_case;
    if (rows ? other.name == "rows" && other.rows == 1
             : other.name == "decode" && other.context == context) {
      return &result;
    }
  }
  return nullptr;
}

}  // namespace

const std::vector<std::string>& bench_case_names() {
  static const std::vector<std::string> kNames = {"rows",  "decode", "prefill", "attention",
                                                  "other", "dual",   "cycle"};
  return kNames;
}

int64_t bench_cache_tokens(const ModelConfig& config, int64_t long_context) {
  // Prefill starts at 0, the others behind a context.
  return std::min(config.max_position_embeddings, long_context + kBlocks[4]) + kBenchMaxRows;
}

std::vector<BenchCase> bench_cases(const Model& model, MatmulPass& matmul, BenchSequence& sequence,
                                   const std::vector<std::string>& names, int64_t long_context) {
  return CaseList(model, matmul, sequence, names, long_context).make();
}

BenchRun run_bench(const std::vector<BenchCase>& cases, int reps,
                   const std::function<MachineLimits()>& probe,
                   const std::function<void(double)>& progress) {
  std::vector<int> runs;
  for (const BenchCase& c : cases) {
    c.run();  // warm-up: pages, caches, scratch
    const double seconds = std::max(1e-6, std::abs(c.run()));
    runs.push_back(
        static_cast<int>(std::clamp(std::ceil(kLeastSeconds / seconds), 1.0, kMostRuns)));
  }
  std::vector<MachineLimits> probes{probe()};
  std::vector<std::vector<double>> times(cases.size());
  for (int rep = 0; rep < reps; ++rep) {
    for (size_t i = 0; i < cases.size(); ++i) {
      double sum = 0;
      for (int run = 0; run < runs[i]; ++run) sum += cases[i].run();
      times[i].push_back(sum / runs[i]);
    }
    probes.push_back(probe());
    progress(static_cast<double>(rep + 1) / reps);
  }
  BenchRun run{typical(probes), std::move(probes), {}};
  for (size_t i = 0; i < cases.size(); ++i) {
    run.results.push_back(summarize(cases[i], times[i], run.probes));
  }
  for (BenchResult& result : run.results) {
    const BenchResult* base = one_row_of(*result.bench_case, run.results);
    if (base) result.ratio_to_one_row = result.seconds / base->seconds;
  }
  return run;
}

}  // namespace orthrus
