#include "kernels/pack_panel.h"

#include <cstring>

namespace orthrus {
namespace {

// [lanes][cols] of T to [cols / unit][kLanes][unit].
template <typename T, int kUnit, typename RowAt>
void interleave(const PanelShape& shape, RowAt row_at, std::byte* panel) {
  auto* out = reinterpret_cast<T*>(panel);
  for (int64_t lane = 0; lane < shape.lanes; ++lane) {
    auto row = row_at(lane);
    for (int64_t k = 0; k < shape.cols; ++k) {
      out[(k / kUnit * kLanes + lane) * kUnit + k % kUnit] = row(k);
    }
  }
}

template <typename T, int kUnit>
void interleave_bytes(const PanelShape& shape, const std::byte* const* rows, std::byte* panel) {
  interleave<T, kUnit>(
      shape,
      [&](int64_t lane) {
        return [row = rows[lane]](int64_t k) {
          T value;  // rows of a file need not be aligned
          std::memcpy(&value, row + static_cast<size_t>(k) * sizeof(T), sizeof(T));
          return value;
        };
      },
      panel);
}

}  // namespace

void interleave_f32(const PanelShape& shape, const float* rows, std::byte* panel) {
  interleave<float, 1>(
      shape,
      [&](int64_t lane) { return [row = rows + lane * shape.cols](int64_t k) { return row[k]; }; },
      panel);
}

void interleave_as_bf16(const PanelShape& shape, const float* rows, std::byte* panel) {
  interleave<bf16_t, 2>(
      shape,
      [&](int64_t lane) {
        return [row = rows + lane * shape.cols](int64_t k) { return f32_to_bf16(row[k]); };
      },
      panel);
}

void interleave_raw(TensorType type, const PanelShape& shape, const std::byte* const* rows,
                    std::byte* panel) {
  if (type == TensorType::kF32) return interleave_bytes<uint32_t, 1>(shape, rows, panel);
  if (type == TensorType::kF16) return interleave_bytes<uint16_t, 1>(shape, rows, panel);
  interleave_bytes<uint16_t, 2>(shape, rows, panel);
}

void ChunkPacker::clear() {
  std::memset(codes_, 0, sizeof(codes_));
  std::memset(scale_, 0, sizeof(scale_));
  std::memset(offset_, 0, sizeof(offset_));
  std::memset(sub_scale_, 0, sizeof(sub_scale_));
  std::memset(sub_offset_, 0, sizeof(sub_offset_));
}

void ChunkPacker::put(int64_t lane, int64_t k, int64_t elements, const DecodedBlock& block) {
  for (int64_t i = 0; i < elements; i += kQuad) {
    std::memcpy(codes_[(k + i) / kQuad][lane], block.codes + i, kQuad);
  }
  if (!form_.two_level) {
    scale_[k / form_.group * kLanes + lane] = block.scale;
    offset_[k / form_.group * kLanes + lane] = block.offset;
    return;
  }
  scale_[lane] = block.scale;
  offset_[lane] = block.offset;
  for (int64_t g = 0; g < form_.groups(); ++g) {
    sub_scale_[g * kLanes + lane] = block.sub_scale[g];
    sub_offset_[g * kLanes + lane] = block.sub_offset[g];
  }
}

void ChunkPacker::store_plane(int shift, int bits, std::byte* out) const {
  if (bits == 8) {  // registers of the plane are the codes as they are
    std::memcpy(out, codes_, static_cast<size_t>(form_.chunk * kLanes));
    return;
  }
  const int per_register = 8 / bits;
  const unsigned mask = (1u << bits) - 1;
  auto* to = reinterpret_cast<uint8_t*>(out);
  for (int64_t quad = 0; quad < form_.chunk / kQuad; quad += per_register, to += 64) {
    uint8_t packed[64] = {};
    for (int i = 0; i < per_register; ++i) {
      const uint8_t* codes = codes_[quad + i][0];
      const int place = i * bits;
      for (int b = 0; b < 64; ++b) {
        packed[b] |= static_cast<uint8_t>(((codes[b] >> shift) & mask) << place);
      }
    }
    std::memcpy(to, packed, 64);
  }
}

void ChunkPacker::store_scales(std::byte* out) const {
  const size_t bytes = form_.scales_bytes();
  if (!form_.two_level) {
    std::memcpy(out + form_.scales_at(), scale_, bytes);
    if (form_.has_offset) std::memcpy(out + form_.offsets_at(), offset_, bytes);
    return;
  }
  if (form_.nibble_scales()) {
    for (size_t i = 0; i < bytes; ++i) {
      out[form_.scales_at() + i] = static_cast<std::byte>(sub_scale_[i] | (sub_offset_[i] << 4));
    }
  } else {
    std::memcpy(out + form_.scales_at(), sub_scale_, bytes);
    if (form_.has_offset) std::memcpy(out + form_.offsets_at(), sub_offset_, bytes);
  }
  constexpr size_t kSuperBytes = kLanes * sizeof(f16_t);
  std::memcpy(out + form_.super_at(), scale_, kSuperBytes);
  if (form_.has_offset) std::memcpy(out + form_.super_at() + kSuperBytes, offset_, kSuperBytes);
}

void ChunkPacker::store(std::byte* out) const {
  store_plane(0, form_.low_bits, out);
  if (form_.high_bits > 0) store_plane(form_.low_bits, form_.high_bits, out + form_.high_at());
  store_scales(out);
}

}  // namespace orthrus
