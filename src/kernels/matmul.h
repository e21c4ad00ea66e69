#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/output_reader.h"
#include "kernels/packed_matrix.h"

namespace orthrus {

/// Forms of activations, beside f32, that products with some matrices read.
struct ActivationForms {
  bool groups = false;  ///< int8 with a scale a group of 32 inputs
  bool bf16 = false;    ///< rounded, where the instruction set multiplies pairs of bf16

  ActivationForms& operator|=(const ActivationForms& other) {
    groups |= other.groups;
    bf16 |= other.bf16;
    return *this;
  }
};

/// The forms that products with this matrix read.
ActivationForms activation_forms(const PackedMatrix& matrix);

/// Rows of activations as matmul wants them: f32, and in the forms that the weights need
/// (docs/numerics.md). Owned by one pass; grows, never shrinks; not thread-safe.
class Activations {
 public:
  /// Room for rows x cols in those forms. No allocation where there is already enough.
  void reserve(int64_t rows, int64_t cols, ActivationForms forms);
  /// What that takes.
  static size_t bytes(int64_t rows, int64_t cols, ActivationForms forms);
  /// Makes the forms of rows [0, rows) of x [rows, cols] (row stride `stride` floats) that the
  /// coming tasks need. x must stay valid until the matmuls on it are done.
  void set(const ComputeContext& context, const float* x, int64_t stride, int64_t rows,
           int64_t cols, ActivationForms forms);

  const float* row(int64_t i) const { return x_ + i * stride_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  friend struct ActivationAccess;  // the kernels
  const float* x_ = nullptr;
  int64_t stride_ = 0, rows_ = 0, cols_ = 0;
  ActivationForms forms_;  // that are there
  AlignedBuffer groups_;   // ActivationGroup [cols padded to 64 / 32, rows]
  AlignedBuffer bf16_;     // [rows, bf16_stride]
};

/// One product: out[i, n] = sum_k x[i, k] * weight[n, k] (+ bias[n]) for rows [row_begin, row_begin
/// + row_count) of the activations; out has its own row i at out + (i - row_begin) * out_stride.
struct MatmulTask {
  const PackedMatrix* weight;
  int64_t row_begin;
  int64_t row_count;
  float* out;
  int64_t out_stride;
  const float* bias = nullptr;     ///< [weight->rows()] or null; added after the sum
  OutputReader* reader = nullptr;  ///< gets the outputs in place of `out`
};

/// Runs all tasks on the same activations in one parallel section, split over threads by output
/// panels and cost (each thread's share within 3 %). Each output is one accumulation over k in a
/// fixed order, whatever the number of rows, tasks or threads: rows are independent bit for bit.
void matmul(const ComputeContext& context, const Activations& x, std::span<const MatmulTask> tasks);

}  // namespace orthrus
