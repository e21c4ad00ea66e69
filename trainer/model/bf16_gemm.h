#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace orthrus::train {

/// Whether this CPU multiplies bfloat16 in pairs (AVX512_BF16): twice the rate of float32.
bool bf16_gemm_supported();

/// A matrix rounded to bfloat16 (to nearest even), rows one behind the other.
class Bf16Rows {
 public:
  /// x [rows, cols] float32, contiguous.
  Bf16Rows(const float* x, int64_t rows, int64_t cols);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  const uint16_t* row(int64_t i) const { return values_.get() + i * stride_; }
  int64_t stride() const { return stride_; }

 private:
  int64_t rows_, cols_, stride_;  // even stride, padded with zeros
  std::unique_ptr<uint16_t[]> values_;
};

/// The right factor of a product, rounded to bfloat16 and laid out as the kernel reads it: panels
/// of 32 columns, in them pairs of rows.
class Bf16Panels {
 public:
  /// B [rows, cols] float32: element (r, c) at b[r * row_stride + c * col_stride]; one stride is 1.
  Bf16Panels(const float* b, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t pairs() const { return pairs_; }
  const uint32_t* panel(int64_t i) const { return values_.get() + i * pairs_ * kCols; }

  static constexpr int64_t kCols = 32;

 private:
  int64_t rows_, cols_, pairs_;
  std::unique_ptr<uint32_t[]> values_;
};

/// out [a.rows, b.cols] float32, contiguous: a b with sums in float32, on all threads of libtorch.
void bf16_gemm(const Bf16Rows& a, const Bf16Panels& b, float* out);

}  // namespace orthrus::train
