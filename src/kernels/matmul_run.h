#pragma once

#include "kernels/matmul_float_tiles.h"
#include "kernels/matmul_group_tiles.h"

namespace orthrus {

/// One group of 32: codes = round(x * 127 / max|x|) to nearest even, scale = max|x| / 127.
template <typename V>
ORTHRUS_INLINE void quantize_group(const float* x, ActivationGroup& group) {
  const auto low = V::load(x);
  const auto high = V::load(x + 16);
  const float largest = V::largest_magnitude(low, high);
  if (!(largest <= __FLT_MAX__)) {  // infinite or NaN
    group = {};
    group.scale = group.scaled_sum = __builtin_nanf("");
    return;
  }
  // Below this 127 / max overflows; such a group is as good as zero.
  const bool zero = largest < 1e-30f;
  const auto inverse = V::splat(zero ? 0.0f : 127.0f / largest);
  const int32_t low_sum = V::store_rounded(group.codes, V::mul(low, inverse));
  const int32_t sum = low_sum + V::store_rounded(group.codes + 16, V::mul(high, inverse));
  group.scale = zero ? 0.0f : largest / 127.0f;
  group.scaled_sum = group.scale * static_cast<float>(sum);
  group.minus_sum = -sum;
  group.minus_half_sum = -low_sum;
}

template <typename V>
void quantize_row(const float* x, int64_t cols, ActivationGroup* groups, int64_t stride) {
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep, groups += stride) quantize_group<V>(x + k, *groups);
  const int64_t padded = (cols + 63) / 64 * 64;
  for (; k < padded; k += kStep, groups += stride) {
    float rest[kStep] = {};
    for (int64_t i = k; i < cols; ++i) rest[i - k] = x[i];
    quantize_group<V>(rest, *groups);
  }
}

template <typename V>
void run_job(const MatmulJob& job, int64_t begin, int64_t end) {
  switch (job.form) {
    case TensorType::kF32:
      return run_floats<V, TensorType::kF32>(job, begin, end);
    case TensorType::kF16:
      return run_floats<V, TensorType::kF16>(job, begin, end);
    case TensorType::kBF16:
      return run_floats<V, TensorType::kBF16>(job, begin, end);
    case TensorType::kQ4_0:
      return run_groups<V, TensorType::kQ4_0>(job, begin, end);
    case TensorType::kQ4_1:
      return run_groups<V, TensorType::kQ4_1>(job, begin, end);
    case TensorType::kQ5_0:
      return run_groups<V, TensorType::kQ5_0>(job, begin, end);
    case TensorType::kQ5_1:
      return run_groups<V, TensorType::kQ5_1>(job, begin, end);
    case TensorType::kQ8_0:
      return run_groups<V, TensorType::kQ8_0>(job, begin, end);
    case TensorType::kQ2_K:
      return run_groups<V, TensorType::kQ2_K>(job, begin, end);
    case TensorType::kQ3_K:
      return run_groups<V, TensorType::kQ3_K>(job, begin, end);
    case TensorType::kQ4_K:
      return run_groups<V, TensorType::kQ4_K>(job, begin, end);
    case TensorType::kQ5_K:
      return run_groups<V, TensorType::kQ5_K>(job, begin, end);
    case TensorType::kQ6_K:
      return run_groups<V, TensorType::kQ6_K>(job, begin, end);
    case TensorType::kIQ4_NL:
      return run_groups<V, TensorType::kIQ4_NL>(job, begin, end);
    case TensorType::kI8:
      break;  // never packed as it is
  }
}

template <typename V>
inline constexpr MatmulKernels kMatmulKernels = {quantize_row<V>, run_job<V>, nullptr};

}  // namespace orthrus
