#pragma once

#include <optional>

#include "decode/cost_model.h"
#include "formats/checkpoint.h"
#include "model/weights.h"
#include "orthrus/options.h"

namespace orthrus {

/// LoadRequest::draft_format for that wish and a model with a diffusion view that is packed in
/// `format`. kAuto: of `format`, q4 and q8 the one whose cycles the cost model expects to yield the
/// most tokens a second on a machine of these rates, less the accepted drafts that fewer bits cost
/// (docs/benchmarks.md, "Draft weights"); twins may take at most a quarter of `available` bytes.
/// `diffusion`: where the `_diff` weights come from; null: they are copies of the AR view's.
std::optional<WeightFormat> choose_draft_format(DraftWeights wish, const Checkpoint& checkpoint,
                                                const TensorSource* diffusion, WeightFormat format,
                                                const MachineRates& rates, int64_t available);

/// LoadOptions::draft_vocab. Error(kUsage) where it is negative.
void limit_draft_vocab(Model& model, int64_t draft_vocab);

/// "same", "q8" or "q4"
const char* draft_weights_name(std::optional<WeightFormat> draft_format);

}  // namespace orthrus
