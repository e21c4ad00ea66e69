#include "kernels/packed_matrix.h"

#include <cstring>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/packed_form.h"

namespace orthrus {
namespace {

template <typename T>
T read(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// The code of input k of a chunk for one lane (see GroupForm).
int code_at(const GroupForm& form, const std::byte* chunk, int64_t lane, int64_t k) {
  const int64_t quad = k / kQuad;
  auto bits_of = [&](const std::byte* plane, int bits) {
    const int per_register = 8 / bits;
    int byte = std::to_integer<int>(plane[quad / per_register * 64 + lane * kQuad + k % kQuad]);
    return (byte >> (quad % per_register * bits)) & ((1 << bits) - 1);
  };
  int code = bits_of(chunk, form.low_bits);
  if (form.high_bits > 0) {
    code |= bits_of(chunk + form.high_at(), form.high_bits) << form.low_bits;
  }
  return form.lookup ? kIq4Codes[static_cast<size_t>(code)] : code;
}

struct GroupScale {
  float scale;
  float offset;
};

GroupScale group_scale(const GroupForm& form, const std::byte* chunk, int64_t lane, int64_t g) {
  const int64_t at = g * kLanes + lane;
  const std::byte* scales = chunk + form.scales_at();
  const std::byte* offsets = chunk + form.offsets_at();
  if (!form.two_level) {
    return {f16_to_f32(read<f16_t>(scales + at * 2)),
            form.has_offset ? f16_to_f32(read<f16_t>(offsets + at * 2)) : 0.0f};
  }
  const std::byte* super = chunk + form.super_at();
  float scale = f16_to_f32(read<f16_t>(super + lane * 2));
  float offset = form.has_offset ? f16_to_f32(read<f16_t>(super + 2 * kLanes + lane * 2)) : 0.0f;
  if (form.nibble_scales()) {
    int both = read<uint8_t>(scales + at);
    return {scale * static_cast<float>(both & 15), offset * static_cast<float>(both >> 4)};
  }
  float sub_offset = form.has_offset ? static_cast<float>(read<int8_t>(offsets + at)) : 0.0f;
  return {scale * static_cast<float>(read<int8_t>(scales + at)), offset * sub_offset};
}

void unpack_group_row(TensorType type, const std::byte* panel, int64_t lane, int64_t cols,
                      float* out) {
  const GroupForm form = group_form(type);
  for (int64_t k = 0; k < cols; k += form.group) {
    const std::byte* chunk = panel + static_cast<size_t>(k / form.chunk) * form.bytes();
    const int64_t first = k % form.chunk;
    const GroupScale s = group_scale(form, chunk, lane, first / form.group);
    for (int64_t i = 0; i < form.group && k + i < cols; ++i) {
      float product =
          s.scale * static_cast<float>(code_at(form, chunk, lane, first + i) - form.zero);
      out[k + i] = form.has_offset ? product - s.offset : product;
    }
  }
}

// Of blocks beyond what was expected: sixteen huge pages. What one has left when the next matrix
// does not fit is never touched.
constexpr size_t kArenaBlock = size_t{32} << 20;

}  // namespace

WeightArena::Piece WeightArena::own(size_t bytes) {
  auto block = std::make_shared<AlignedBuffer>(bytes);
  return {block, block->data()};
}

void WeightArena::add_block(size_t bytes) {
  block_ = std::make_shared<AlignedBuffer>(bytes);
  used_ = 0;
}

WeightArena::Piece WeightArena::allocate(size_t bytes) {
  bytes = piece_bytes(bytes);
  if (!block_ && expected_ >= bytes) add_block(expected_);
  if (!block_ || block_->size() - used_ < bytes) {
    if (bytes > kArenaBlock / 2) return own(bytes);
    add_block(kArenaBlock);
  }
  std::byte* data = block_->data() + used_;
  used_ += bytes;
  return {block_, data};
}

void unpack_row(const PackedMatrix& matrix, int64_t row, float* out) {
  ORTHRUS_CHECK(row >= 0 && row < matrix.rows());
  const int64_t cols = matrix.cols();
  const int64_t lane = row % kLanes;
  const std::byte* panel = PackedAccess::data(matrix) +
                           static_cast<size_t>(row / kLanes) * panel_bytes(matrix.form(), cols);
  switch (matrix.form()) {
    case TensorType::kF32:
      for (int64_t k = 0; k < cols; ++k) out[k] = read<float>(panel + (k * kLanes + lane) * 4);
      return;
    case TensorType::kF16:
      for (int64_t k = 0; k < cols; ++k) {
        out[k] = f16_to_f32(read<f16_t>(panel + (k * kLanes + lane) * 2));
      }
      return;
    case TensorType::kBF16:
      for (int64_t k = 0; k < cols; ++k) {
        out[k] = bf16_to_f32(read<bf16_t>(panel + (k / 2 * kLanes + lane) * 4 + k % 2 * 2));
      }
      return;
    default:
      return unpack_group_row(matrix.form(), panel, lane, cols, out);
  }
}

}  // namespace orthrus
