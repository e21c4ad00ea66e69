#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_passes.h"
#include "kernels/probe.h"

namespace orthrus {

/// One thing to time.
struct BenchCase {
  std::string name;  ///< rows, decode, prefill, attention, other, dual, cycle
  int64_t rows = 1;
  std::optional<int64_t> context;  ///< tokens in the cache before the pass; none where it has none
  std::vector<PassWork> passes;    ///< what it does; empty where no limit makes sense
  std::function<double()> run;     ///< runs it once and returns the seconds
};

/// What came out, over all repetitions.
struct BenchResult {
  const BenchCase* bench_case = nullptr;
  double seconds = 0;  ///< median
  double least = 0, most = 0;
  std::optional<double> gbps, gflops;  ///< reached, against what the case must read and compute
  /// Times the one-row pass: of the same kind (rows), else the one-row decode step at the same
  /// context (at the shortest one for prefill). For `dual` that is the break-even in tokens a
  /// cycle.
  std::optional<double> ratio_to_one_row;
  /// max(bytes / bandwidth, operations / peak) by the better of the probes before and after a
  /// repetition: the median over the repetitions.
  std::optional<double> limit_seconds;
  /// Time over that limit, each repetition by its own: the median over the repetitions.
  std::optional<double> ratio_to_limit;
};

struct BenchRun {
  MachineLimits machine;              ///< median over the probes
  std::vector<MachineLimits> probes;  ///< before, between and after the repetitions
  std::vector<BenchResult> results;
};

/// Tokens before the passes of decode, attention and dual at a long context.
inline constexpr int64_t kBenchLongContext = 4096;

/// Names of all cases, for --cases.
const std::vector<std::string>& bench_case_names();

/// The cases whose name is in `names` (empty: all) that the model's context has room for. Those of
/// the dual view are there only where the model has one. The passes must outlive the cases.
std::vector<BenchCase> bench_cases(const Model& model, MatmulPass& matmul, BenchSequence& sequence,
                                   const std::vector<std::string>& names,
                                   int64_t long_context = kBenchLongContext);

/// Tokens that the cache of BenchSequence must hold, and rows of the largest pass.
int64_t bench_cache_tokens(const ModelConfig& config, int64_t long_context);
inline constexpr int64_t kBenchMaxRows = 512;
inline constexpr int64_t kBenchMatmulRows = 64;

/// Times all cases round robin, `reps` times, after a warm-up: what disturbs the machine for a
/// while meets them all. `probe` measures the machine before, between and after the repetitions,
/// because what a shared machine can do changes within minutes. progress: share done.
BenchRun run_bench(const std::vector<BenchCase>& cases, int reps,
                   const std::function<MachineLimits()>& probe,
                   const std::function<void(double)>& progress);

}  // namespace orthrus
