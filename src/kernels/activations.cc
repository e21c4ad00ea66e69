#include "kernels/activations.h"

#include "base/error.h"
#include "kernels/matmul.h"

namespace orthrus {
namespace {

// Rows of exactly a power of two bytes would fall on the same cache sets; one line more avoids it.
constexpr int64_t kCodePad = 64;
constexpr int64_t kGroupPad = 2;
// Below this many values a second thread costs more than it saves.
constexpr int64_t kParallelValues = 16384;

int64_t padded(int64_t cols) { return (cols + 63) / 64 * 64; }

}  // namespace

void Activations::reserve(int64_t rows, int64_t cols) {
  const auto codes = static_cast<size_t>(rows * (padded(cols) + kCodePad));
  const auto groups =
      static_cast<size_t>(rows * (padded(cols) / 32 + kGroupPad)) * sizeof(ActivationGroup);
  if (codes_.size() < codes) codes_ = AlignedBuffer(codes);
  if (groups_.size() < groups) groups_ = AlignedBuffer(groups);
}

void Activations::set(const ComputeContext& context, const float* x, int64_t stride, int64_t rows,
                      int64_t cols, bool quantize) {
  ORTHRUS_CHECK(rows >= 0 && cols > 0);
  x_ = x;
  stride_ = stride;
  rows_ = rows;
  cols_ = cols;
  quantized_ = quantize;
  if (!quantize || rows == 0) return;
  reserve(rows, cols);
  code_stride_ = padded(cols) + kCodePad;
  group_stride_ = padded(cols) / 32 + kGroupPad;
  const auto quantize_row = matmul_kernels(context.isa).quantize_row;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      quantize_row(row(i), cols, codes_.as<int8_t>() + i * code_stride_,
                   groups_.as<ActivationGroup>() + i * group_stride_);
    }
  };
  if (rows * cols < kParallelValues) return run(0, rows);
  context.pool.parallel_for(rows, run);
}

}  // namespace orthrus
