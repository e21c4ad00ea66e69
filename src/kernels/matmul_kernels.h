#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "kernels/isa.h"

namespace orthrus {

/// 32 quantised activations of one row: x is about scale * code. The sums let a zero point and an
/// offset of the weights be taken out at the price of one step a group.
struct ActivationGroup {
  int8_t codes[32];
  float scale;             ///< NaN where an activation is not finite; 0 where all are 0
  float scaled_sum;        ///< scale * sum of the codes
  int32_t minus_sum;       ///< -sum of the codes
  int32_t minus_half_sum;  ///< -sum of the first 16 codes
};
static_assert(sizeof(ActivationGroup) == 48);

/// One task, resolved to pointers. Strides: x and out in floats, groups in groups. x, groups and
/// out point at the task's first row.
struct MatmulJob {
  TensorType form;
  const std::byte* panels;
  size_t panel_bytes;
  int64_t outputs;
  int64_t cols;
  int64_t rows;
  const float* x;
  int64_t x_stride;
  /// Group g of row i is groups[g * group_stride + i]: the rows of a tile lie side by side.
  const ActivationGroup* groups;
  int64_t group_stride;
  /// Rows rounded to bf16, an even number of inputs each; where the kernels have round_row.
  const uint16_t* bf16;
  int64_t bf16_stride;
  float* out;
  int64_t out_stride;
  const float* bias;
};

/// The kernels of one instruction set.
struct MatmulKernels {
  /// Quantises one row of `cols` activations; group g goes to groups[g * stride], up to cols
  /// rounded up to 64 (the rest zero).
  void (*quantize_row)(const float* x, int64_t cols, ActivationGroup* groups, int64_t stride);
  /// All rows of the job for panels [begin, end).
  void (*run)(const MatmulJob& job, int64_t begin, int64_t end);
  /// Rounds one row of `cols` activations to bf16, with zeros up to a multiple of 16; null where
  /// bf16 weights are multiplied by f32 activations.
  void (*round_row)(const float* x, int64_t cols, uint16_t* out);
};

const MatmulKernels& portable_matmul_kernels();
#if defined(__x86_64__)
const MatmulKernels& avx2_matmul_kernels();
const MatmulKernels& avxvnni_matmul_kernels();
const MatmulKernels& avx512_matmul_kernels();
const MatmulKernels& avx512bf16_matmul_kernels();
#elif defined(__aarch64__)
const MatmulKernels& neon_matmul_kernels();
#endif

}  // namespace orthrus
