#include "kernels/activations.h"

#include "base/error.h"
#include "kernels/matmul.h"

namespace orthrus {
namespace {

// Below this many values a second thread costs more than it saves.
constexpr int64_t kParallelValues = 16384;

int64_t groups_of(int64_t cols) { return (cols + 63) / 64 * 2; }

size_t group_bytes(int64_t rows, int64_t cols) {
  return static_cast<size_t>(rows * groups_of(cols)) * sizeof(ActivationGroup);
}
size_t bf16_bytes(int64_t rows, int64_t cols) {
  return static_cast<size_t>(rows * bf16_stride(cols)) * sizeof(uint16_t);
}

}  // namespace

size_t Activations::bytes(int64_t rows, int64_t cols, ActivationForms forms) {
  return (forms.groups ? group_bytes(rows, cols) : 0) + (forms.bf16 ? bf16_bytes(rows, cols) : 0);
}

void Activations::reserve(int64_t rows, int64_t cols, ActivationForms forms) {
  const auto grow = [](AlignedBuffer& buffer, size_t needed) {
    if (buffer.size() < needed) buffer = AlignedBuffer(needed);
  };
  if (forms.groups) grow(groups_, group_bytes(rows, cols));
  if (forms.bf16) grow(bf16_, bf16_bytes(rows, cols));
}

void Activations::set(const ComputeContext& context, const float* x, int64_t stride, int64_t rows,
                      int64_t cols, ActivationForms forms) {
  ORTHRUS_CHECK(rows >= 0 && cols > 0);
  const MatmulKernels& kernels = matmul_kernels(context.isa);
  forms.bf16 = forms.bf16 && kernels.round_row != nullptr;
  x_ = x;
  stride_ = stride;
  rows_ = rows;
  cols_ = cols;
  forms_ = forms;
  if ((!forms.groups && !forms.bf16) || rows == 0) return;
  reserve(rows, cols, forms);
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (forms.groups) {
        kernels.quantize_row(row(i), cols, groups_.as<ActivationGroup>() + i, rows);
      }
      if (forms.bf16) {
        kernels.round_row(row(i), cols, bf16_.as<uint16_t>() + i * bf16_stride(cols));
      }
    }
  };
  if (rows * cols < kParallelValues) return run(0, rows);
  context.pool.parallel_for(rows, run);
}

}  // namespace orthrus
