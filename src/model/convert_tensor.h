#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/tensor_source.h"
#include "kernels/source_rows.h"

namespace orthrus {

/// A tensor as packing reads it, a vector as a column. `scales`: read_row_scales() of it.
MatrixSource matrix_source(const TensorInfo& info, std::span<const float> scales);

/// A vector as floats, in Hugging Face order.
std::vector<float> read_vector(const TensorSource& tensors, std::string_view name, int64_t size);

/// The scales of a kI8 tensor's rows; empty for other types.
std::vector<float> read_row_scales(const TensorSource& tensors, const TensorInfo& info);

/// The rows of a tensor in another type, as load_model would hold them: `type` is kF32, kBF16,
/// kQ8_0 or kQ4_0. A vector is a column of rows.
class TensorConverter {
 public:
  /// interleaved_heads: of the rows that come out, as in TensorInfo. `info` must outlive this.
  TensorConverter(const TensorSource& tensors, const TensorInfo& info, TensorType type,
                  int interleaved_heads);
  TensorConverter(const TensorConverter&) = delete;  // `rows_` points into this
  TensorConverter& operator=(const TensorConverter&) = delete;

  int64_t rows() const { return source_.rows; }
  size_t row_bytes() const { return orthrus::row_bytes(type_, source_.cols); }
  /// Rows [begin, end) one after the other. Error(kInput) names the row where a value does not fit
  /// the type. Safe from many threads.
  void convert(int64_t begin, int64_t end, std::byte* out) const;

 private:
  void convert_row(int64_t row, std::vector<float>& values, std::byte* out) const;

  TensorType type_;
  int interleaved_heads_;
  std::vector<float> scales_;
  MatrixSource source_;
  SourceRows rows_;
};

}  // namespace orthrus
