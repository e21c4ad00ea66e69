#pragma once

#include "model/weights.h"

namespace orthrus {

/// The same model with every matrix as f32, holding the very values that the packed form stands
/// for: what is left between the two is the arithmetic alone. The AR view only. Four bytes a
/// weight; one matrix at a time is held twice.
Model dequantized(const Model& model, ThreadPool& pool);

}  // namespace orthrus
