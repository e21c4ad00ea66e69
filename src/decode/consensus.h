#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decode/sampler.h"
#include "kernels/row_ops.h"
#include "orthrus/options.h"

namespace orthrus {

/// KL(softmax(p) || softmax(q)) in nats of two rows of logits of equal length, without NaN or +inf.
/// Infinity where q bans a token that p allows. `scratch` grows to the row's length.
double kl_divergence(std::span<const float> p, std::span<const float> q, const RowOps& ops,
                     std::vector<float>& scratch);

/// The agreement of the two views (paper, section 3; "Consensus" in options.h): judges drafts in
/// order against the AR view's rows. Keeps the draft rows where the rule or the statistics need
/// them.
class ConsensusJudge {
 public:
  /// Error(kUsage) for a threshold that is negative or NaN.
  ConsensusJudge(const GenerateOptions& options, Sampler& sampler, int64_t vocab_size, Isa isa);

  /// Room for the rows of `count` drafts; before the first keep().
  void reserve(int64_t count);
  /// The draft for position history.size() from the diffusion view's row; none where the row is not
  /// usable.
  std::optional<int32_t> draft(const LogitsRow& row, std::span<const int32_t> history);
  /// Whether rows of logits are needed: keep() wants those of drafts, over the whole vocabulary.
  bool keeps_rows() const { return rejection() || needs_kl(); }
  /// Remembers the first `rows` rows of the draft pass [rows, vocab] until the next cycle.
  void keep(std::span<const float> logits, int64_t rows);
  /// The drafts at hand have no rows (a Drafter made them).
  void keep_none() { kept_rows_ = 0; }

  struct Verdict {
    bool accepted;
    int32_t token;  ///< the draft where accepted, else what stands in its place
  };
  /// Judges draft number `index` of this cycle. `history`: all tokens before it. None where the AR
  /// row is not usable.
  std::optional<Verdict> judge(int64_t index, int32_t draft, const LogitsRow& ar_row,
                               std::span<const int32_t> history);

  /// Mean KL in nats, and the share of judged positions with KL >= the threshold; only where
  /// computed.
  std::optional<double> kl_mean() const;
  std::optional<double> conflict_rate() const;

 private:
  std::optional<Verdict> judge_rejection(int64_t index, int32_t draft,
                                         std::span<const float> ar_logits,
                                         std::span<const int32_t> history);
  /// Whether the sampled rejection rule is in force: at T = 0 it is exact consensus.
  bool rejection() const { return consensus_ == Consensus::kRejection && !sampler_.greedy(); }
  bool needs_kl() const { return stats_ || consensus_ == Consensus::kKl; }
  std::span<const float> kept_row(int64_t index) const;

  Consensus consensus_;
  double threshold_;
  bool stats_;
  Sampler& sampler_;
  const RowOps& ops_;
  int64_t vocab_size_;
  std::vector<float> rows_;  // [kept_rows_, vocab] of the draft pass
  int64_t kept_rows_ = 0;
  std::vector<float> scratch_;
  Distribution p_, q_;
  double kl_sum_ = 0;
  int64_t judged_ = 0;
  int64_t conflicts_ = 0;
};

}  // namespace orthrus
