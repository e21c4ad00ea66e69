#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/generator.h"

namespace orthrus {

/// How well the diffusion view drafts, over some generations. A cycle is a draft and its
/// verification; the first token of an answer belongs to the prefill and to no cycle.
struct AcceptanceSummary {
  int64_t prompts = 0;
  int64_t tokens = 0;  ///< completion tokens, those of the prefill included
  int64_t cycles = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t forward_passes = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;

  /// [i]: cycles that accepted exactly i drafts; block entries.
  std::vector<int64_t> histogram;
  /// [i]: share of all cycles that accepted draft i (and all before it); block - 1 entries. Short
  /// cycles at the end of an answer count too.
  std::vector<double> acceptance;

  struct Metrics {
    double acceptance_length = 0;  ///< accepted drafts a cycle
    double tokens_per_cycle = 0;   ///< acceptance_length + 1
    double tpf = 0;                ///< completion tokens a forward pass, prefill counted as one
  };
  Metrics weighted;       ///< over all tokens
  Metrics mean;           ///< mean of the prompts' own
  Metrics deviation;      ///< standard deviation of the prompts' own
  int64_t mean_over = 0;  ///< prompts in mean and deviation: those with at least one cycle
};

/// Adds generations up.
class AcceptanceTally {
 public:
  /// block: rows of a full draft block, the anchor included.
  explicit AcceptanceTally(int64_t block) : block_(block) {
    totals_.histogram.assign(static_cast<size_t>(block), 0);
  }
  void add(const GenerateResult& result);
  AcceptanceSummary summary() const;

 private:
  int64_t block_;
  AcceptanceSummary totals_;
  std::vector<AcceptanceSummary::Metrics> prompts_;
};

struct EvaluateOptions {
  int64_t block = 0;  ///< rows of the block, anchor included; 0: the model's full block
  int64_t max_new_tokens = 256;
  bool ignore_eos = false;
  /// Called after each prompt with its index and result.
  std::function<void(size_t, const GenerateResult&)> done;
};

/// The block that evaluate() will use. Error(kUsage) where the model has no diffusion view or the
/// asked-for block is not between 2 and the model's.
int64_t evaluated_block(const Model& model, int64_t block);

/// Greedy dual-view generations with a block of fixed size, so that figures of different models
/// and machines compare. Stops early where `stop` asks: what is done by then is summed up.
AcceptanceSummary evaluate(Generator& generator, std::span<const std::vector<int32_t>> prompts,
                           const EvaluateOptions& options, std::stop_token stop);

}  // namespace orthrus
