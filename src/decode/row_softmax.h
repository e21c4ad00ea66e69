#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_ops.h"
#include "orthrus/options.h"

namespace orthrus {

/// The softmax of a row of logits, in double: log p(i) = x[i] - log_sum.
struct RowSoftmax {
  /// `weights` grows to the row's length and then holds exp(x[i] - x[top]).
  RowSoftmax(const RowOps& ops, std::span<const float> logits, std::vector<float>& weights);

  double log_probability(int32_t token) const {
    return static_cast<double>(x[static_cast<size_t>(token)]) - log_sum;
  }

  std::span<const float> x;
  int64_t top;     ///< index of the largest; -1 where a logit is NaN or +inf, and the rest is unset
  double sum = 0;  ///< of exp(x - x[top])
  double log_sum = 0;
};

/// Log probabilities of `token` and of the `most_likely` best ones, best first (equal ones by id).
/// The row must be finite.
TokenLogprobs token_logprobs(const RowSoftmax& row, int32_t token, int64_t most_likely);

}  // namespace orthrus
