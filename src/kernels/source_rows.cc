#include "kernels/source_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/rotary_rows.h"
#include "kernels/quantize.h"

namespace orthrus {

SourceRows::SourceRows(const MatrixSource& source)
    : source_(source), bytes_(row_bytes(source.type, source.cols)) {}

int64_t SourceRows::file_row(int64_t row) const {
  if (source_.interleaved_heads == 0) return row;
  return interleaved_row(row, source_.rows / source_.interleaved_heads);
}

std::span<const std::byte> SourceRows::raw(int64_t row) const {
  return source_.data.subspan(static_cast<size_t>(file_row(row)) * bytes_, bytes_);
}

float SourceRows::row_scale(int64_t row) const {
  return source_.row_scales[static_cast<size_t>(file_row(row))];
}

void SourceRows::values(int64_t row, float* out) const {
  dequantize(source_.type, raw(row), {out, static_cast<size_t>(source_.cols)});
  if (source_.type != TensorType::kI8) return;
  const float scale = row_scale(row);
  for (int64_t k = 0; k < source_.cols; ++k) out[k] *= scale;
}

bool SourceRows::quantises(TensorType form) const {
  const bool keeps_codes = source_.type == TensorType::kI8 && form == TensorType::kQ8_0;
  return source_.type != form && !keeps_codes;
}

void SourceRows::block(TensorType form, int64_t row, int64_t k, const float* values,
                       DecodedBlock& out) const {
  if (source_.type == form) return read_block(row, k, out);
  if (!quantises(form)) return read_i8(row, k, out);
  float padded[kQuantBlock] = {};
  const int64_t count = std::min<int64_t>(kQuantBlock, source_.cols - k);
  std::memcpy(padded, values + k, static_cast<size_t>(count) * sizeof(float));
  const bool fits = form == TensorType::kQ8_0 ? quantize_q8(padded, out) : quantize_q4(padded, out);
  if (!fits) {
    fail("row {}, columns {} to {}: a value is not finite or too large to be quantised", row, k,
         k + count - 1);
  }
}

void SourceRows::read_block(int64_t row, int64_t k, DecodedBlock& out) const {
  const TensorTypeTraits& t = traits(source_.type);
  const std::byte* block =
      raw(row).data() + static_cast<size_t>(k / t.block_elements) * t.block_bytes;
  decode_block(source_.type, block, out);
  if (!std::isfinite(f16_to_f32(out.scale)) || !std::isfinite(f16_to_f32(out.offset))) {
    fail("row {}, column {}: the scale of a {} block is not finite", row, k, t.name);
  }
}

void SourceRows::read_i8(int64_t row, int64_t k, DecodedBlock& out) const {
  const std::byte* codes = raw(row).data() + k;
  const int64_t count = std::min<int64_t>(kQuantBlock, source_.cols - k);
  std::memset(out.codes, 128, kQuantBlock);
  for (int64_t i = 0; i < count; ++i) {
    out.codes[i] = static_cast<uint8_t>(std::to_integer<uint8_t>(codes[i]) ^ 0x80);
  }
  out.scale = f32_to_f16(row_scale(row));
  out.offset = 0;
  if (!std::isfinite(f16_to_f32(out.scale))) {
    fail("row {}: its scale {} is not a finite half", row, row_scale(row));
  }
}

}  // namespace orthrus
