#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decode/noise.h"
#include "decode/row_scan.h"
#include "decode/token_constraint.h"
#include "kernels/row_ops.h"
#include "orthrus/options.h"

namespace orthrus {

/// Tokens that may follow and their probabilities, by ascending id; probabilities sum to 1.
struct Distribution {
  std::vector<int32_t> ids;
  std::vector<double> probabilities;

  /// 0 for a token that is not among them.
  double of(int32_t token) const;
};

/// The sampling chain of one request on one row of logits: logit bias, penalties, the constraint's
/// mask, temperature, top-k, top-p, min-p, then argmax(logits / T + Gumbel noise). A pure function
/// of (row, history, options, stream), so draft rows, verify rows and plain AR rows can be asked in
/// any order. The position of the token being chosen is history.size(). Keeps scratch rows; not
/// thread-safe.
class Sampler {
 public:
  /// Error(kUsage) for options out of range or a biased token outside the vocabulary.
  /// The answer begins at history[answer_begin]. The constraint, if any, must outlive this.
  Sampler(const SamplingOptions& options, int64_t vocab_size, Isa isa, int64_t answer_begin = 0,
          TokenConstraint* constraint = nullptr);

  bool greedy() const { return options_.temperature == 0; }

  /// The chosen token, or none where the row holds NaN or +inf or no token is left.
  /// logits: of the tokens below logits.size(), all or a part of the vocabulary; history: prompt
  /// and answer up to the token being chosen.
  std::optional<int32_t> choose(std::span<const float> logits, std::span<const int32_t> history,
                                NoiseStream stream);
  /// The same of a row that may have been scanned (for the stream and position asked for here).
  std::optional<int32_t> choose(const LogitsRow& row, std::span<const int32_t> history,
                                NoiseStream stream) {
    return row.scan != nullptr ? row.scan->token(row.index) : choose(row.logits, history, stream);
  }

  /// Whether choose() looks at nothing but the row and its position: RowScan may do it.
  bool can_scan() const { return row_.empty() && (greedy() || !has_filters()); }
  RowDraw draw_of_rows() const { return {&ops_, noise_block_, options_.temperature}; }
  NoiseKey key(int64_t position, NoiseStream stream) const;

  /// The distribution that choose() draws from. False where choose() would give none.
  bool distribution(std::span<const float> logits, std::span<const int32_t> history,
                    Distribution& out);

  /// Draws from weights (not all zero, any scale) of ascending token ids.
  int32_t draw(std::span<const int32_t> ids, std::span<const double> weights, int64_t position,
               NoiseStream stream) const;

  /// Random number in (0, 1) for the acceptance test at a position.
  double acceptance_uniform(int64_t position) const;

 private:
  struct Row {
    const float* x;  // [size_] after bias and penalties
    int32_t best;    // its argmax
  };
  std::optional<Row> prepare(std::span<const float> logits, std::span<const int32_t> history);
  void apply_bias();
  void apply_penalties(std::span<const int32_t> history);
  void penalise(std::span<const int32_t> tokens, double repeat, double presence, double frequency);
  void apply_constraint(std::span<const int32_t> answer);
  /// Fills candidates_ with the tokens that the filters leave; false where all of them stay.
  bool filter(const Row& row);
  void gather(const float* x, float threshold);
  void gather_top_k(const Row& row, int64_t k);
  void gather_top_p(const Row& row);
  double weigh_candidates(float best);
  void keep_top_p(double wanted);
  bool has_filters() const {
    return (options_.top_k > 0 && options_.top_k < vocab_size_) || options_.top_p < 1 ||
           options_.min_p > 0;
  }
  float weight_scale() const;  // 1 / T

  struct Candidate {
    float logit;
    int32_t id;
    float weight;  // exp((logit - best) / T), once weighed
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  SamplingOptions options_;
  int64_t vocab_size_;
  int64_t size_ = 0;  // tokens of the row at hand
  size_t answer_begin_;
  TokenConstraint* constraint_;
  const RowOps& ops_;
  NoiseBlockFn noise_block_;
  std::vector<float> row_;  // [vocab_size] after bias, penalties, mask; empty where there are none
  std::vector<float> weights_;   // [vocab_size] exp((logit - best) / T)
  std::vector<int32_t> counts_;  // [vocab_size] occurrences in the window; zero between calls
  std::vector<Candidate> candidates_;
};

}  // namespace orthrus
