#include "trainer/model/bf16_gemm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/isa.h"
#include "trainer/model/bf16_kernel.h"

namespace orthrus::train {
namespace {

// Pairs of the inner dimension worked on at a time: a panel of them takes 96 KiB of the L2 cache.
constexpr int64_t kPairs = 768;

uint32_t bf16_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return bits >> 16 | 0x40;  // NaN stays one
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

}  // namespace

#if !defined(__x86_64__)
const Bf16Kernel* bf16_kernel() { return nullptr; }
#endif

bool bf16_gemm_supported() {
#if defined(__x86_64__)
  static const bool supported =
      isa_supported(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16") != 0;
  return supported;
#else
  return false;
#endif
}

Bf16Rows::Bf16Rows(const float* x, int64_t rows, int64_t cols)
    : rows_(rows),
      cols_(cols),
      stride_(cols + cols % 2),
      values_(new uint16_t[static_cast<size_t>(rows * stride_)]) {
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      bf16_kernel()->round_row(x + r * cols, cols, values_.get() + r * stride_);
    }
  });
}

Bf16Panels::Bf16Panels(const float* b, int64_t rows, int64_t cols, int64_t row_stride,
                       int64_t col_stride)
    : rows_(rows), cols_(cols), pairs_((rows + 1) / 2) {
  ORTHRUS_CHECK(row_stride == 1 || col_stride == 1);
  const int64_t panels = (cols + kCols - 1) / kCols;
  values_.reset(new uint32_t[static_cast<size_t>(panels * pairs_ * kCols)]);
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      uint32_t* const to = values_.get() + p * pairs_ * kCols;
      const int64_t first = p * kCols, count = std::min(kCols, cols - first);
      if (col_stride == 1) {
        for (int64_t k = 0; k < pairs_; ++k) {
          const float* const row = b + 2 * k * row_stride + first;
          bf16_kernel()->pair_rows(row, 2 * k + 1 < rows ? row + row_stride : nullptr, count,
                                   to + k * kCols);
        }
        continue;
      }
      std::fill(to, to + pairs_ * kCols, 0u);
      for (int64_t c = 0; c < count; ++c) {
        const float* const column = b + (first + c) * col_stride;
        for (int64_t r = 0; r < rows; ++r) {
          to[r / 2 * kCols + c] |= bf16_bits(column[r]) << (r % 2 * 16);
        }
      }
    }
  });
}

void bf16_gemm(const Bf16Rows& a, const Bf16Panels& b, float* out) {
  ORTHRUS_CHECK(a.cols() == b.rows());
  const int64_t panels = (b.cols() + Bf16Panels::kCols - 1) / Bf16Panels::kCols;
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * Bf16Panels::kCols;
      for (int64_t k = 0; k < b.pairs(); k += kPairs) {
        bf16_kernel()->multiply({a.row(0) + 2 * k, a.stride(), a.rows(),
                                 b.panel(p) + k * Bf16Panels::kCols,
                                 std::min(kPairs, b.pairs() - k), out + first, b.cols(),
                                 std::min(Bf16Panels::kCols, b.cols() - first), k > 0});
      }
    }
  });
}

}  // namespace orthrus::train
