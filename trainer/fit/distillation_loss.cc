#include "trainer/fit/distillation_loss.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "trainer/fit/softmax_rows.h"

namespace orthrus::train {
namespace {

/// Rows [first, last) with the AR rows they need, each once.
struct Chunk {
  int64_t first, last;
  std::vector<int64_t> teacher_rows;  // distinct
  std::vector<int64_t> teacher_of;    // [last - first], index into teacher_rows
};

Chunk make_chunk(const LossRows& rows, int64_t first, int64_t last) {
  Chunk chunk{first, last, {}, {}};
  for (int64_t i = first; i < last; ++i) {
    const int64_t row = rows.teacher_rows[static_cast<size_t>(i)];
    if (chunk.teacher_rows.empty() || chunk.teacher_rows.back() != row) {
      ORTHRUS_CHECK(chunk.teacher_rows.empty() || chunk.teacher_rows.back() < row);
      chunk.teacher_rows.push_back(row);
    }
    chunk.teacher_of.push_back(static_cast<int64_t>(chunk.teacher_rows.size()) - 1);
  }
  return chunk;
}

template <typename T>
at::Tensor to_device(const std::vector<T>& values, size_t first, size_t count, at::Device device) {
  return at::tensor(at::ArrayRef<T>(values.data() + first, count)).to(device);
}

/// One chunk on any device. Turns student logits into the gradient by them, returns the loss of
/// each row [rows].
struct ChunkLoss {
  at::Tensor loss;      // [rows], unweighted
  at::Tensor gradient;  // [rows, vocab], weighted
  at::Tensor agrees;    // [rows] bool
};

ChunkLoss chunk_loss(const at::Tensor& teacher_logits, const at::Tensor& student_logits,
                     const at::Tensor& teacher_of, const at::Tensor& targets,
                     const at::Tensor& weights, const LossOptions& options) {
  const double kl_share = 1 - options.cross_entropy;
  const at::Tensor teacher = at::log_softmax(teacher_logits / options.temperature, -1);
  const at::Tensor student = at::log_softmax(student_logits / options.temperature, -1);
  const at::Tensor p = teacher.exp();
  const at::Tensor negative_entropy = (p * teacher).sum(-1).index_select(0, teacher_of);
  const at::Tensor p_rows = p.index_select(0, teacher_of);
  const at::Tensor target = targets.unsqueeze(1);
  ChunkLoss result;
  result.loss = kl_share * (negative_entropy - (p_rows * student).sum(-1)) -
                options.cross_entropy * student.gather(1, target).squeeze(1);
  at::Tensor gradient = student.exp().sub_(p_rows, kl_share);
  gradient.scatter_add_(1, target,
                        at::full_like(target, -options.cross_entropy, weights.options()));
  result.gradient = gradient.mul_(weights.unsqueeze(1) * options.temperature);
  result.agrees =
      teacher_logits.argmax(-1).index_select(0, teacher_of) == student_logits.argmax(-1);
  return result;
}

}  // namespace

LossResult distillation_loss(const LossRows& rows, const Linear& lm_head, Precision precision,
                             const LossOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t count = rows.student.size(0);
  ORTHRUS_CHECK(static_cast<size_t>(count) == rows.teacher_rows.size() &&
                rows.targets.size() == rows.teacher_rows.size() &&
                rows.weights.size() == rows.teacher_rows.size());
  const int64_t step = std::max<int64_t>(1, options.chunk_floats / lm_head.weight().size(0));
  const at::Device device = rows.student.device();
  const double square = options.temperature * options.temperature;
  LossResult result;
  result.gradient = at::empty_like(rows.student);
  for (int64_t first = 0; first < count; first += step) {
    const Chunk chunk = make_chunk(rows, first, std::min(first + step, count));
    const auto begin = static_cast<size_t>(first);
    const auto size = static_cast<size_t>(chunk.last - first);
    const at::Tensor teacher_index =
        to_device(chunk.teacher_rows, 0, chunk.teacher_rows.size(), device);
    const at::Tensor teacher =
        lm_head.forward(rows.teacher.index_select(0, teacher_index), precision);
    at::Tensor student =
        lm_head.forward(rows.student.narrow(0, first, chunk.last - first), precision);
    if (softmax_rows_supported(student)) {
      const SoftmaxRows job{{rows.targets.data() + begin, size},
                            {rows.weights.data() + begin, size},
                            chunk.teacher_of,
                            options.temperature,
                            options.cross_entropy};
      result.loss += square * softmax_rows(teacher, student, job, result.agrees);
      result.gradient.narrow(0, first, chunk.last - first)
          .copy_(lm_head.input_gradient(student, precision));
      continue;
    }
    const at::Tensor weights =
        to_device(rows.weights, begin, size, device).to(student.scalar_type());
    const ChunkLoss loss =
        chunk_loss(teacher, student, to_device(chunk.teacher_of, 0, size, device),
                   to_device(rows.targets, begin, size, device), weights, options);
    result.loss += square * (loss.loss * weights).sum().item<double>();
    result.gradient.narrow(0, first, chunk.last - first)
        .copy_(lm_head.input_gradient(loss.gradient, precision));
    const at::Tensor agrees = loss.agrees.to(at::kCPU).to(at::kByte).contiguous();
    result.agrees.insert(result.agrees.end(), agrees.data_ptr<uint8_t>(),
                         agrees.data_ptr<uint8_t>() + agrees.numel());
  }
  return result;
}

}  // namespace orthrus::train
