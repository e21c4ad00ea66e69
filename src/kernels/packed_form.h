#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "kernels/packed_matrix.h"

namespace orthrus {

/// Outputs of a panel: the lanes of every kernel.
inline constexpr int64_t kLanes = 16;
/// Inputs of a step, the period of every plane of codes, and of one scale of the activations.
inline constexpr int64_t kStep = 32;
/// Inputs that one 64-byte register of codes holds for its 16 outputs.
inline constexpr int64_t kQuad = 4;

/// How one panel of a group format lies in memory: chunks of `chunk` inputs, each a run of `bytes`
/// bytes with the low bits of the codes, their high bits, and the scales.
///
/// A plane of b bits is a run of 64-byte registers; byte 4 * lane + i of a register holds, from
/// its low bits up, the codes of input i of 8 / b consecutive quads: one shift and one mask give
/// back the register that the dot product wants.
///
/// One-level: an f16 scale [group][lane], then an f16 offset [group][lane] where has_offset.
/// Two-level: an int8 sub-scale [group][lane], then sub-offset [group][lane] (Q2_K holds both in
/// one byte: scale in the low four bits), then the f16 super-scale [lane] and super-offset [lane].
struct GroupForm {
  int low_bits = 0;
  int high_bits = 0;
  int group = 0;
  int zero = 0;  ///< a power of two, or 0
  bool two_level = false;
  bool has_offset = false;
  bool lookup = false;
  int64_t chunk = 0;

  constexpr int64_t groups() const { return chunk / group; }
  constexpr bool nibble_scales() const { return two_level && has_offset && low_bits == 2; }
  constexpr size_t plane_bytes(int bits) const {
    return static_cast<size_t>(chunk * kLanes * bits / 8);
  }
  constexpr size_t high_at() const { return plane_bytes(low_bits); }
  constexpr size_t scales_at() const { return high_at() + plane_bytes(high_bits); }
  constexpr size_t scales_bytes() const {
    return static_cast<size_t>(groups() * kLanes * (two_level ? 1 : 2));
  }
  constexpr size_t offsets_at() const { return scales_at() + scales_bytes(); }
  constexpr size_t super_at() const {
    return offsets_at() + (has_offset && !nibble_scales() ? scales_bytes() : 0);
  }
  constexpr size_t bytes() const {
    size_t super = two_level ? 2 * kLanes * (has_offset ? 2 : 1) : 0;
    return (super_at() + super + 63) / 64 * 64;
  }
};

/// The form of a block type. All zeros (group == 0) for plain types.
constexpr GroupForm group_form(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0:
      return {.low_bits = 4, .group = 32, .zero = 8, .chunk = 64};
    case TensorType::kQ4_1:
      return {.low_bits = 4, .group = 32, .has_offset = true, .chunk = 64};
    case TensorType::kQ5_0:
      return {.low_bits = 4, .high_bits = 1, .group = 32, .zero = 16, .chunk = 64};
    case TensorType::kQ5_1:
      return {.low_bits = 4, .high_bits = 1, .group = 32, .has_offset = true, .chunk = 64};
    case TensorType::kQ8_0:
      return {.low_bits = 8, .group = 32, .zero = 128, .chunk = 64};
    case TensorType::kIQ4_NL:
      return {.low_bits = 4, .group = 32, .zero = 128, .lookup = true, .chunk = 64};
    case TensorType::kQ2_K:
      return {.low_bits = 2, .group = 16, .two_level = true, .has_offset = true, .chunk = 256};
    case TensorType::kQ3_K:
      return {
          .low_bits = 2, .high_bits = 1, .group = 16, .zero = 4, .two_level = true, .chunk = 256};
    case TensorType::kQ4_K:
      return {.low_bits = 4, .group = 32, .two_level = true, .has_offset = true, .chunk = 256};
    case TensorType::kQ5_K:
      return {.low_bits = 4,
              .high_bits = 1,
              .group = 32,
              .two_level = true,
              .has_offset = true,
              .chunk = 256};
    case TensorType::kQ6_K:
      return {
          .low_bits = 4, .high_bits = 2, .group = 16, .zero = 32, .two_level = true, .chunk = 256};
    default:
      return {};
  }
}

/// IQ4_NL's values plus 128, by code.
inline constexpr std::array<uint8_t, 16> kIq4Codes = {1,   24,  45,  63,  79,  93,  106, 118,
                                                      129, 141, 153, 166, 181, 197, 217, 241};

/// Access of the packers and kernels to the parts of a packed matrix.
struct PackedAccess {
  static const std::byte* data(const PackedMatrix& m) { return m.data_; }
};

/// Chunks of a panel of `cols` inputs (group formats).
constexpr int64_t panel_chunks(const GroupForm& form, int64_t cols) {
  return (cols + form.chunk - 1) / form.chunk;
}

/// Bytes of one panel of 16 outputs over `cols` inputs in that form. bf16 holds inputs in pairs.
constexpr size_t panel_bytes(TensorType form, int64_t cols) {
  switch (form) {
    case TensorType::kF32:
      return static_cast<size_t>(cols * kLanes * 4);
    case TensorType::kF16:
      return static_cast<size_t>(cols * kLanes * 2);
    case TensorType::kBF16:
      return static_cast<size_t>((cols + 1) / 2 * kLanes * 4);
    default:
      return static_cast<size_t>(panel_chunks(group_form(form), cols)) * group_form(form).bytes();
  }
}

constexpr int64_t panel_count(int64_t rows) { return (rows + kLanes - 1) / kLanes; }

}  // namespace orthrus
