#include "model/convert_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/dtype.h"
#include "base/rotary_rows.h"
#include "formats/tensor_names.h"

namespace orthrus {

MatrixSource matrix_source(const TensorInfo& info, std::span<const float> scales) {
  return {info.type,
          info.data,
          info.shape[0],
          info.shape.size() == 2 ? info.shape[1] : 1,
          info.interleaved_heads,
          scales};
}

std::vector<float> read_vector(const TensorSource& tensors, std::string_view name, int64_t size) {
  const TensorInfo& info = tensors.require(name, std::array{size});
  const MatrixSource column = matrix_source(info, {});
  const SourceRows rows(column);
  std::vector<float> values(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) rows.values(i, &values[static_cast<size_t>(i)]);
  return values;
}

std::vector<float> read_row_scales(const TensorSource& tensors, const TensorInfo& info) {
  if (info.type != TensorType::kI8) return {};
  return read_vector(tensors, info.name + std::string(kScaleSuffix), info.shape[0]);
}

TensorConverter::TensorConverter(const TensorSource& tensors, const TensorInfo& info,
                                 TensorType type, int interleaved_heads)
    : type_(type),
      interleaved_heads_(interleaved_heads),
      scales_(read_row_scales(tensors, info)),
      source_(matrix_source(info, scales_)),
      rows_(source_) {}

void TensorConverter::convert(int64_t begin, int64_t end, std::byte* out) const {
  std::vector<float> values(static_cast<size_t>(source_.cols));
  for (int64_t i = begin; i < end; ++i, out += row_bytes()) {
    const int64_t row =
        interleaved_heads_ > 0 ? plain_row(i, source_.rows / interleaved_heads_) : i;
    convert_row(row, values, out);
  }
}

void TensorConverter::convert_row(int64_t row, std::vector<float>& values, std::byte* out) const {
  if (source_.type == type_) {
    std::memcpy(out, rows_.raw(row).data(), row_bytes());
    return;
  }
  const TensorTypeTraits& t = traits(type_);
  if (t.block_elements == 1 || rows_.quantises(type_)) rows_.values(row, values.data());
  if (type_ == TensorType::kF32) {
    std::memcpy(out, values.data(), row_bytes());
  } else if (type_ == TensorType::kBF16) {
    std::vector<bf16_t> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), f32_to_bf16);
    std::memcpy(out, rounded.data(), row_bytes());
  } else {
    DecodedBlock block;
    for (int64_t k = 0; k < source_.cols; k += t.block_elements, out += t.block_bytes) {
      rows_.block(type_, row, k, values.data(), block);
      encode_block(type_, block, out);
    }
  }
}

}  // namespace orthrus
