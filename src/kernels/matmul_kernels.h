#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "kernels/isa.h"

namespace orthrus {

/// What the kernels need to know of 32 quantised activations: x is about scale * code. The sums let
/// a zero point and an offset of the weights be taken out at the price of one step a group.
struct ActivationGroup {
  float scale;        ///< NaN where an activation is not finite; 0 where all are 0
  int32_t minus_sum;  ///< -sum of the codes
  float scaled_sum;   ///< scale * sum of the codes
  int32_t half_minus_sum[2];
  float half_scaled_sum[2];  ///< the same for the two groups of 16
  int32_t unused;
};
static_assert(sizeof(ActivationGroup) == 32);

/// One task, resolved to pointers. Strides: x in floats, codes in bytes, groups in groups, out in
/// floats. out and x point at the task's first row.
struct MatmulJob {
  TensorType form;
  const std::byte* panels;
  size_t panel_bytes;
  int64_t outputs;
  int64_t cols;
  int64_t rows;
  const float* x;
  int64_t x_stride;
  const int8_t* codes;
  int64_t code_stride;
  const ActivationGroup* groups;
  int64_t group_stride;
  float* out;
  int64_t out_stride;
  const float* bias;
};

/// The kernels of one instruction set.
struct MatmulKernels {
  /// Quantises one row of `cols` activations in groups of 32; writes cols rounded up to 64 codes
  /// and their groups (the rest zero).
  void (*quantize_row)(const float* x, int64_t cols, int8_t* codes, ActivationGroup* groups);
  /// All rows of the job for panels [begin, end).
  void (*run)(const MatmulJob& job, int64_t begin, int64_t end);
};

const MatmulKernels& portable_matmul_kernels();
#if defined(__x86_64__)
const MatmulKernels& avx2_matmul_kernels();
const MatmulKernels& avx512_matmul_kernels();
#endif

}  // namespace orthrus
