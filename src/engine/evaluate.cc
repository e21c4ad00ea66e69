#include "engine/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace orthrus {
namespace {

using Metrics = AcceptanceSummary::Metrics;

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Metrics metrics(int64_t tokens, int64_t passes, int64_t accepted, int64_t cycles) {
  return {share(accepted, cycles), share(accepted + cycles, cycles), share(tokens, passes)};
}

/// Mean (or, given one, the standard deviation around it) of one metric over prompts.
double mean_of(const std::vector<Metrics>& prompts, double Metrics::*metric) {
  double sum = 0;
  for (const Metrics& m : prompts) sum += m.*metric;
  return prompts.empty() ? 0 : sum / static_cast<double>(prompts.size());
}

double deviation_of(const std::vector<Metrics>& prompts, double Metrics::*metric, double mean) {
  if (prompts.size() < 2) return 0;
  double sum = 0;
  for (const Metrics& m : prompts) sum += (m.*metric - mean) * (m.*metric - mean);
  return std::sqrt(sum / static_cast<double>(prompts.size() - 1));
}

}  // namespace

void AcceptanceTally::add(const GenerateResult& result) {
  const auto tokens = static_cast<int64_t>(result.token_ids.size());
  ++totals_.prompts;
  totals_.tokens += tokens;
  totals_.cycles += result.cycles;
  totals_.drafted += result.drafted;
  totals_.accepted += result.accepted;
  totals_.forward_passes += result.forward_passes;
  totals_.prefill_seconds += result.prefill_seconds;
  totals_.decode_seconds += result.decode_seconds;
  for (const int64_t accepted : result.accepted_per_cycle) {
    ORTHRUS_CHECK(accepted >= 0 && accepted < block_);
    ++totals_.histogram[static_cast<size_t>(accepted)];
  }
  if (result.cycles > 0) {
    prompts_.push_back(metrics(tokens, result.forward_passes, result.accepted, result.cycles));
  }
}

AcceptanceSummary AcceptanceTally::summary() const {
  AcceptanceSummary s = totals_;
  int64_t at_least = s.cycles;
  for (int64_t i = 0; i + 1 < block_; ++i) {
    at_least -= s.histogram[static_cast<size_t>(i)];
    s.acceptance.push_back(share(at_least, s.cycles));
  }
  s.weighted = metrics(s.tokens, s.forward_passes, s.accepted, s.cycles);
  s.mean_over = static_cast<int64_t>(prompts_.size());
  for (double Metrics::*m :
       {&Metrics::acceptance_length, &Metrics::tokens_per_cycle, &Metrics::tpf}) {
    s.mean.*m = mean_of(prompts_, m);
    s.deviation.*m = deviation_of(prompts_, m, s.mean.*m);
  }
  return s;
}

int64_t evaluated_block(const Model& model, int64_t block) {
  if (!model.has_diffusion()) fail_usage("eval: the model has no diffusion view to evaluate");
  const int64_t full = model.config.block_size;
  if (block == 0) return full;
  if (block < 2 || block > full) {
    fail_usage("eval: the block is {} rows, expected 2 to the model's {}", block, full);
  }
  return block;
}

AcceptanceSummary evaluate(Generator& generator, std::span<const std::vector<int32_t>> prompts,
                           const EvaluateOptions& options, std::stop_token stop) {
  const int64_t block = evaluated_block(generator.loaded().model, options.block);
  GenerateOptions generate;
  generate.max_new_tokens = options.max_new_tokens;
  generate.draft_max = block - 1;
  generate.ignore_eos = options.ignore_eos;
  AcceptanceTally tally(block);
  for (size_t i = 0; i < prompts.size() && !stop.stop_requested(); ++i) {
    const GenerateResult result = generator.generate(prompts[i], generate, nullptr, nullptr, stop);
    tally.add(result);
    if (options.done) options.done(i, result);
  }
  return tally.summary();
}

}  // namespace orthrus
