#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

namespace orthrus::train {

struct SoftmaxRows {
  std::span<const int64_t> targets;     // [rows]
  std::span<const float> weights;       // [rows]
  std::span<const int64_t> teacher_of;  // [rows]: row of the teacher's logits
  double temperature;
  double cross_entropy;
};

/// Whether softmax_rows has a form for these logits: float32 in this machine's own memory.
bool softmax_rows_supported(const at::Tensor& logits);

/// The row-wise part of the loss on the CPU, a row at a time while it lies in the cache: returns
/// the weighted loss (without T^2), turns the student's logits [rows, vocab] into the gradient by
/// them (with T^2), and appends to `agrees` whether both choose the same token. teacher: logits
/// [distinct rows, vocab].
double softmax_rows(const at::Tensor& teacher, at::Tensor& student, const SoftmaxRows& job,
                    std::vector<uint8_t>& agrees);

}  // namespace orthrus::train
