#pragma once

#include <cstddef>

#include "formats/tensor_source.h"
#include "orthrus/options.h"

namespace orthrus {

/// Bytes that a tensor takes once loaded in that format: matrices are packed, vectors become
/// floats.
size_t runtime_bytes(const TensorInfo& tensor, WeightFormat format);

}  // namespace orthrus
