#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ggml_blocks.h"
#include "kernels/packed_form.h"

namespace orthrus {

/// A panel's outputs that exist (the others stay zero) and its inputs.
struct PanelShape {
  int64_t lanes;
  int64_t cols;
};

/// Lay rows of floats [lanes, cols] out as an f32 or bf16 panel. `panel` is zero-filled.
void interleave_f32(const PanelShape& shape, const float* rows, std::byte* panel);
void interleave_as_bf16(const PanelShape& shape, const float* rows, std::byte* panel);

/// The same from raw rows that already have the panel's type (kF32, kF16, kBF16).
void interleave_raw(TensorType type, const PanelShape& shape, const std::byte* const* rows,
                    std::byte* panel);

/// Collects the blocks of 16 outputs over one chunk of inputs and writes them in the packed form.
class ChunkPacker {
 public:
  explicit ChunkPacker(const GroupForm& form) : form_(form) {}

  /// Back to all zeros: codes, scales, offsets.
  void clear();
  /// A block of `elements` inputs, the first of which is input k of the chunk.
  void put(int64_t lane, int64_t k, int64_t elements, const DecodedBlock& block);
  /// Writes form.bytes() bytes.
  void store(std::byte* out) const;

 private:
  void store_plane(int shift, int bits, std::byte* out) const;
  void store_scales(std::byte* out) const;

  const GroupForm form_;
  alignas(64) uint8_t codes_[256 / kQuad][kLanes][kQuad];
  f16_t scale_[16 * kLanes];  // [group][lane]; two-level: [lane], the super-scale
  f16_t offset_[16 * kLanes];
  int8_t sub_scale_[16 * kLanes];  // [group][lane]
  int8_t sub_offset_[16 * kLanes];
};

}  // namespace orthrus
