#pragma once

#include "kernels/matmul_float_tiles.h"
#include "kernels/matmul_group_tiles.h"

namespace orthrus {

/// Rounds to nearest even for |value| < 2^22: adding 1.5 * 2^23 leaves the integer in the low bits.
template <typename V>
ORTHRUS_INLINE int32_t round_to_int(float value) {
  const float shifted = value + 12582912.0f;
  int32_t bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  return bits - 0x4b400000;
}

/// One group of 32: codes = round(x * 127 / max|x|), scale = max|x| / 127.
template <typename V>
void quantize_group(const float* x, int8_t* codes, ActivationGroup& group) {
  // Magnitudes order like their bits; infinity and NaN are above all finite ones.
  int32_t most = 0;
  for (int i = 0; i < kStep; ++i) {
    int32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof(bits));
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  float largest;
  __builtin_memcpy(&largest, &most, sizeof(largest));
  group = {};
  if (most >= 0x7f800000) {
    for (int i = 0; i < kStep; ++i) codes[i] = 0;
    group.scale = group.scaled_sum = __builtin_nanf("");
    group.half_scaled_sum[0] = group.half_scaled_sum[1] = group.scale;
    return;
  }
  // Below this 127 / max overflows; such a group is as good as zero.
  const bool zero = largest < 1e-30f;
  const float inverse = zero ? 0.0f : 127.0f / largest;
  group.scale = zero ? 0.0f : largest / 127.0f;
  for (int half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) {
      const int32_t code = round_to_int<V>(x[half * 16 + i] * inverse);
      codes[half * 16 + i] = static_cast<int8_t>(code);
      sum += code;
    }
    group.half_minus_sum[half] = -sum;
    group.half_scaled_sum[half] = group.scale * static_cast<float>(sum);
  }
  group.minus_sum = group.half_minus_sum[0] + group.half_minus_sum[1];
  group.scaled_sum = group.scale * static_cast<float>(-group.minus_sum);
}

template <typename V>
void quantize_row(const float* x, int64_t cols, int8_t* codes, ActivationGroup* groups) {
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep) quantize_group<V>(x + k, codes + k, *groups++);
  const int64_t padded = (cols + 63) / 64 * 64;
  for (; k < padded; k += kStep) {
    float rest[kStep] = {};
    for (int64_t i = k; i < cols; ++i) rest[i - k] = x[i];
    quantize_group<V>(rest, codes + k, *groups++);
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
inline constexpr MatmulKernels kMatmulKernels = {quantize_row<V>, run_job<V>};

}  // namespace orthrus
