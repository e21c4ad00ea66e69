#pragma once

#include <span>

#include "kernels/ggml_blocks.h"
#include "kernels/packed_matrix.h"

namespace orthrus {

/// Reads rows of a source, in Hugging Face order, as another form wants them: the one place that
/// says what values a block of q8 or q4 gets, for packing and for files.
class SourceRows {
 public:
  /// `source` must outlive this.
  explicit SourceRows(const MatrixSource& source);

  const MatrixSource& source() const { return source_; }
  std::span<const std::byte> raw(int64_t row) const;
  /// cols floats.
  void values(int64_t row, float* out) const;

  /// Whether block() quantises floats for that form; it does not where the source has its blocks,
  /// nor for the codes of int8 weights, which q8 keeps.
  bool quantises(TensorType form) const;
  /// The block of the block type `form` that starts at column k, zeros behind the last column.
  /// `values`: all of the row, needed where quantises(form). Error(kInput) names the row where a
  /// value or a scale is not finite or too large.
  void block(TensorType form, int64_t row, int64_t k, const float* values, DecodedBlock& out) const;

 private:
  int64_t file_row(int64_t row) const;
  float row_scale(int64_t row) const;
  void read_block(int64_t row, int64_t k, DecodedBlock& out) const;
  void read_i8(int64_t row, int64_t k, DecodedBlock& out) const;

  const MatrixSource& source_;
  size_t bytes_;  // of a row
};

}  // namespace orthrus
