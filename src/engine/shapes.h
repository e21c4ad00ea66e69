#pragma once

#include <string>

#include "formats/checkpoint.h"

namespace orthrus {

/// The configuration of a published model, for benchmarks on random weights and for plans:
/// qwen3-0.6b, qwen3-1.7b, qwen3-8b or smollm2-135m. Error(kUsage) for any other name.
ModelConfig named_shape(const std::string& name);

/// A bf16 checkpoint of both views in that shape, without files and values: for what can be said of
/// one before it is loaded.
Checkpoint shape_checkpoint(const ModelConfig& shape);

/// "qwen3-0.6b, ...", for messages.
std::string shape_names();

}  // namespace orthrus
