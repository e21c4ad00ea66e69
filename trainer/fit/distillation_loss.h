#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/linear.h"

namespace orthrus::train {

/// Rows of the diffusion view beside the AR rows that they are to imitate.
struct LossRows {
  at::Tensor student;                 // [rows, hidden], after the final norm; no graph needed
  at::Tensor teacher;                 // [tokens, hidden], after the final norm
  std::vector<int64_t> teacher_rows;  // [rows], ascending: row of `teacher` at the same position
  std::vector<int64_t> targets;       // [rows]: the token that follows there
  std::vector<float> weights;         // [rows]
};

struct LossOptions {
  double temperature = 1.0;  ///< of both views; the loss is multiplied by its square
  double cross_entropy = 0;  ///< share of -log p(target) in the loss, 0 to 1; the rest is KL
  /// Logits held at a time, of each view.
  int64_t chunk_floats = int64_t{1} << 23;
};

struct LossResult {
  double loss = 0;              ///< weighted sum, nats
  at::Tensor gradient;          ///< [rows, hidden], by the student rows
  std::vector<uint8_t> agrees;  ///< [rows]: both views would choose the same token
};

/// Sum over rows of weight * T^2 * ((1 - c) * KL(p_AR || p_diff) + c * -log p_diff(target)), with
/// both softmaxes at temperature T (paper: forward KL over the whole vocabulary), and its gradient
/// by the student rows, in chunks: no [rows, vocab] tensor exists as a whole. Every AR row is
/// projected once (once more where a chunk ends), by lm_head [vocab, hidden].
LossResult distillation_loss(const LossRows& rows, const Linear& lm_head, Precision precision,
                             const LossOptions& options);

}  // namespace orthrus::train
