#pragma once

#include "kernels/ggml_blocks.h"

namespace orthrus {

/// Values in a block of the runtime formats q8 and q4.
inline constexpr int kQuantBlock = 32;

/// q8: 32 values as codes 1..255 around 128, scale = max|x| / 127 rounded to f16 (the form of
/// Q8_0). False where a value is not finite or the scale does not fit f16.
bool quantize_q8(const float* values, DecodedBlock& out);

/// q4: 32 values as codes 0..15 around 8 with an f16 scale (the form of Q4_0). Of a few scales
/// around max|x| / 8, both signs, each refined by least squares, the one with the least squared
/// error. False as above.
bool quantize_q4(const float* values, DecodedBlock& out);

}  // namespace orthrus
