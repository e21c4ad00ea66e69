#pragma once

#include <string>

#include "formats/checkpoint.h"

namespace orthrus {

/// What most of the weights run in: "f32", "bf16", "q8", "q4" where `asked` (a value of --weights)
/// converts them, else the type that the file has and keeps ("bf16", "q4_1", "q4_k").
std::string runtime_weights(const Checkpoint& checkpoint, const std::string& asked);

}  // namespace orthrus
