#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/tensor_type.h"

namespace orthrus {

/// One block of a ggml block type taken apart, in the terms of PackedLayout: value =
/// scale * (code - zero) - offset. One-level types: f16 `scale`, `offset`. Two-level: the scale of
/// group g is scale * sub_scale[g], its offset is offset * sub_offset[g].
struct DecodedBlock {
  uint8_t codes[256];
  f16_t scale;
  f16_t offset;
  int8_t sub_scale[16];
  int8_t sub_offset[16];
};

/// Takes one block apart (32 or 256 codes, by type). `type` is a block type.
void decode_block(TensorType type, const std::byte* block, DecodedBlock& out);

/// Puts one back together. `type` is kQ8_0 or kQ4_0.
void encode_block(TensorType type, const DecodedBlock& block, std::byte* out);

/// Values of a decoded block: 32 or 256 floats.
void block_values(TensorType type, const DecodedBlock& block, float* out);

}  // namespace orthrus
