#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "decode/noise.h"
#include "kernels/row_ops.h"

namespace orthrus {

/// How a request draws from rows: the largest logit, or (temperature > 0) the largest of logit /
/// temperature + Gumbel noise.
struct RowDraw {
  const RowOps* ops = nullptr;
  NoiseBlockFn noise_block = nullptr;
  double temperature = 0;
};

/// The token that a row of logits draws, of pieces in any order; of equal ones the lowest id. Noise
/// is computed only where it can lift a token above the best so far: whole blocks are skipped by
/// the noise's bound or by their bits, single tokens by their bits.
class RowMaximum {
 public:
  RowMaximum() = default;
  RowMaximum(const RowDraw& draw, const NoiseKey& noise) : draw_(draw), noise_(noise) {}

  /// Logits of the tokens [first, first + count); first is a multiple of 4.
  void add(const float* x, int64_t first, int64_t count) {
    add(x, first, count, draw_.ops->argmax(x, count));
  }
  /// The same where their argmax is known.
  void add(const float* x, int64_t first, int64_t count, int64_t largest);
  /// What another one found in other pieces of the row.
  void add(const RowMaximum& other);
  /// None where a logit was NaN or +inf, or all were -inf.
  std::optional<int32_t> token() const;

 private:
  void take(int32_t id, double value) {
    if (value > value_ || (value == value_ && id < id_)) {
      id_ = id;
      value_ = value;
    }
  }

  RowDraw draw_;
  NoiseKey noise_;
  int32_t id_ = -1;
  double value_ = -std::numeric_limits<double>::infinity();
  bool usable_ = true;
};

}  // namespace orthrus
