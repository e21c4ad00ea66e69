#pragma once

#include <string>

#include "formats/model_config.h"

namespace orthrus {

/// The configuration of a published model, for benchmarks on random weights and for plans:
/// qwen3-0.6b, qwen3-1.7b, qwen3-8b or smollm2-135m. Error(kUsage) for any other name.
ModelConfig named_shape(const std::string& name);

/// "qwen3-0.6b, ...", for messages.
std::string shape_names();

}  // namespace orthrus
