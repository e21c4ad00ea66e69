#include "kernels/vec_math_avx512.h"
#include "trainer/model/bf16_kernel.h"

namespace orthrus::train {
namespace {

constexpr int kRows = 12;  // with two vectors of columns: 24 sums of the 32 registers

__mmask16 first(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1u);
}

template <int R>
void multiply_rows(const Bf16PanelTask& t, int64_t row) {
  const uint16_t* const a = t.a + row * t.a_stride;
  float* const out = t.out + row * t.out_stride;
  const __mmask16 low = first(t.cols), high = first(t.cols - 16);
  __m512 sums[R][2];
  for (int r = 0; r < R; ++r) {
    sums[r][0] = t.add ? _mm512_maskz_loadu_ps(low, out + r * t.out_stride) : _mm512_setzero_ps();
    sums[r][1] =
        t.add ? _mm512_maskz_loadu_ps(high, out + r * t.out_stride + 16) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < t.pairs; ++k) {
    const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(t.panel + k * 32));
    const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(t.panel + k * 32 + 16));
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * t.a_stride + 2 * k, sizeof(pair));
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, b0);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, b1);
    }
  }
  for (int r = 0; r < R; ++r) {
    _mm512_mask_storeu_ps(out + r * t.out_stride, low, sums[r][0]);
    _mm512_mask_storeu_ps(out + r * t.out_stride + 16, high, sums[r][1]);
  }
}

template <int R>
void multiply_rest(const Bf16PanelTask& t, int64_t row) {
  if constexpr (R > 0) {
    if (t.rows - row == R) return multiply_rows<R>(t, row);
    multiply_rest<R - 1>(t, row);
  }
}

void multiply(const Bf16PanelTask& t) {
  int64_t row = 0;
  for (; row + kRows <= t.rows; row += kRows) multiply_rows<kRows>(t, row);
  multiply_rest<kRows - 1>(t, row);
}

void round_row(const float* x, int64_t cols, uint16_t* to) {
  for (int64_t i = 0; i < cols; i += 16) {
    const auto bits = reinterpret_cast<__m256i>(
        _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(first(cols - i), x + i)));
    _mm256_mask_storeu_epi16(to + i, first(cols + cols % 2 - i), bits);
  }
}

void pair_rows(const float* a, const float* b, int64_t cols, uint32_t* to) {
  for (int64_t i = 0; i < 32; i += 16) {
    const __mmask16 mask = first(cols - i);
    const auto lower = reinterpret_cast<__m256i>(
        _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, a + (mask != 0 ? i : 0))));
    const __m512 second =
        b == nullptr || mask == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, b + i);
    const auto upper = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second));
    _mm512_storeu_si512(to + i,
                        _mm512_or_si512(_mm512_cvtepu16_epi32(lower),
                                        _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16)));
  }
}

}  // namespace

const Bf16Kernel* bf16_kernel() {
  static constexpr Bf16Kernel kKernel = {multiply, round_row, pair_rows};
  return &kKernel;
}

}  // namespace orthrus::train
