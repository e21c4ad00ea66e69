#pragma once

#include "formats/model_config.h"
#include "trainer/data/row_plan.h"

namespace orthrus::train {

/// Operations that a row of training really needs, 2 a weight and pass: the AR view's forward pass
/// over all tokens, the diffusion view's over all block rows, the gradients by the inputs of its
/// matrices and by its own weights; and lm_head once for each AR row that is imitated, twice for
/// each row that is trained. Attention, norms and the optimiser do not count.
double training_flops(const ModelConfig& config, const PlannedRow& row, int64_t block_size);

/// A row with as many tokens and whole blocks as the options allow, anchors evenly spread.
PlannedRow full_row(const RowPlanOptions& options);

}  // namespace orthrus::train
