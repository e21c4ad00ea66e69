#include "kernels/activations.h"

#include "base/error.h"
#include "kernels/matmul.h"

namespace orthrus {
namespace {

// Below this many values a second thread costs more than it saves.
constexpr int64_t kParallelValues = 16384;

int64_t groups_of(int64_t cols) { return (cols + 63) / 64 * 2; }

}  // namespace

void Activations::reserve(int64_t rows, int64_t cols) {
  const auto bytes = static_cast<size_t>(rows * groups_of(cols)) * sizeof(ActivationGroup);
  if (groups_.size() < bytes) groups_ = AlignedBuffer(bytes);
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
  const auto quantize_row = matmul_kernels(context.isa).quantize_row;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      quantize_row(row(i), cols, groups_.as<ActivationGroup>() + i, rows);
    }
  };
  if (rows * cols < kParallelValues) return run(0, rows);
  context.pool.parallel_for(rows, run);
}

}  // namespace orthrus
