#include "decode/consensus.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace orthrus {

double kl_divergence(std::span<const float> p, std::span<const float> q, const RowOps& ops,
                     std::vector<float>& scratch) {
  const int64_t n = static_cast<int64_t>(p.size());
  ORTHRUS_CHECK(p.size() == q.size() && n > 0);
  if (scratch.size() < p.size()) scratch.resize(p.size());
  const float q_max = ops.max(q.data(), n);
  const double q_sum = ops.exp_sum(q.data(), q_max, 1, n, scratch.data());
  const float p_max = ops.max(p.data(), n);
  const double p_sum = ops.exp_sum(p.data(), p_max, 1, n, scratch.data());
  if (std::isinf(q_max) || std::isinf(p_max)) return std::numeric_limits<double>::infinity();
  // sum_i p_i * (log p_i - log q_i), the maxima taken off first so that equal rows cancel exactly.
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (scratch[i] == 0) continue;  // 0 * log(0 / q) = 0
    const double gap = (static_cast<double>(p[i]) - p_max) - (static_cast<double>(q[i]) - q_max);
    sum += scratch[i] * gap;
  }
  return std::max(0.0, sum / p_sum + log_double(q_sum) - log_double(p_sum));
}

ConsensusJudge::ConsensusJudge(const GenerateOptions& options, Sampler& sampler, int64_t vocab_size,
                               Isa isa)
    : consensus_(options.consensus),
      threshold_(options.consensus_threshold),
      stats_(options.consensus_stats),
      sampler_(sampler),
      ops_(row_ops(isa)),
      vocab_size_(vocab_size) {
  if (!(threshold_ >= 0)) {
    fail_usage("consensus-threshold: expected 0 or more nats, found {}", threshold_);
  }
}

void ConsensusJudge::reserve(int64_t count) {
  const size_t vocab = static_cast<size_t>(vocab_size_);
  if (!keeps_rows()) return;
  rows_.resize(static_cast<size_t>(count) * vocab);
  if (needs_kl()) scratch_.resize(vocab);
  if (!rejection()) return;
  for (Distribution* d : {&p_, &q_}) {
    d->ids.reserve(vocab);
    d->probabilities.reserve(vocab);
  }
}

std::optional<int32_t> ConsensusJudge::draft(const LogitsRow& row,
                                             std::span<const int32_t> history) {
  return sampler_.choose(row, history, rejection() ? NoiseStream::kDraft : NoiseStream::kToken);
}

void ConsensusJudge::keep(std::span<const float> logits, int64_t rows) {
  kept_rows_ = keeps_rows() ? rows : 0;
  const size_t wanted = static_cast<size_t>(kept_rows_ * vocab_size_);
  ORTHRUS_CHECK(wanted <= rows_.size() && wanted <= logits.size());
  std::copy_n(logits.begin(), wanted, rows_.begin());
}

std::span<const float> ConsensusJudge::kept_row(int64_t index) const {
  return std::span(rows_).subspan(static_cast<size_t>(index * vocab_size_),
                                  static_cast<size_t>(vocab_size_));
}

std::optional<ConsensusJudge::Verdict> ConsensusJudge::judge(int64_t index, int32_t draft,
                                                             const LogitsRow& ar_row,
                                                             std::span<const int32_t> history) {
  const bool has_row = index < kept_rows_;
  double kl = std::numeric_limits<double>::infinity();
  if (has_row && needs_kl()) {
    if (ops_.argmax(ar_row.logits.data(), vocab_size_) < 0) return std::nullopt;
    kl = kl_divergence(ar_row.logits, kept_row(index), ops_, scratch_);
    kl_sum_ += kl;
    conflicts_ += kl >= threshold_;
    ++judged_;
  }
  if (rejection()) return judge_rejection(index, draft, ar_row.logits, history);
  const auto token = sampler_.choose(ar_row, history, NoiseStream::kToken);
  if (!token) return std::nullopt;
  const bool accepted = draft == *token || (consensus_ == Consensus::kKl && kl < threshold_);
  return Verdict{accepted, accepted ? draft : *token};
}

/// Leviathan et al., "Fast inference from transformers via speculative decoding" (ICML 2023),
/// algorithm 1: accept with probability min(1, p / q), else draw from the normalised max(p - q, 0).
std::optional<ConsensusJudge::Verdict> ConsensusJudge::judge_rejection(
    int64_t index, int32_t draft, std::span<const float> ar_logits,
    std::span<const int32_t> history) {
  if (!sampler_.distribution(ar_logits, history, p_)) return std::nullopt;
  if (index < kept_rows_) {
    ORTHRUS_CHECK(sampler_.distribution(kept_row(index), history, q_));
  } else {  // a Drafter's certain choice
    q_.ids.assign(1, draft);
    q_.probabilities.assign(1, 1.0);
  }
  const int64_t position = static_cast<int64_t>(history.size());
  if (sampler_.acceptance_uniform(position) * q_.of(draft) < p_.of(draft)) {
    return Verdict{true, draft};
  }
  double left = 0;
  for (size_t i = 0, j = 0; i < p_.ids.size(); ++i) {  // both ids ascend
    while (j < q_.ids.size() && q_.ids[j] < p_.ids[i]) ++j;
    if (j < q_.ids.size() && q_.ids[j] == p_.ids[i]) {
      p_.probabilities[i] = std::max(p_.probabilities[i] - q_.probabilities[j], 0.0);
    }
    left += p_.probabilities[i];
  }
  // Nothing left means that p and q are equal but for rounding, and a draw from q is one from p.
  const Distribution& residual = left > 0 ? p_ : q_;
  return Verdict{
      false, sampler_.draw(residual.ids, residual.probabilities, position, NoiseStream::kResidual)};
}

std::optional<double> ConsensusJudge::kl_mean() const {
  if (judged_ == 0) return std::nullopt;
  return kl_sum_ / static_cast<double>(judged_);
}

std::optional<double> ConsensusJudge::conflict_rate() const {
  if (judged_ == 0) return std::nullopt;
  return static_cast<double>(conflicts_) / static_cast<double>(judged_);
}

}  // namespace orthrus
