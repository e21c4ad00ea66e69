#include "trainer/fit/softmax_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/row_ops.h"

namespace orthrus::train {
namespace {

constexpr int64_t kLanes = 16;  // independent sums, so that the compiler may use vectors

double dot(const float* a, const float* b, int64_t n) {
  double total = 0;
  // In pieces, so that float32 sums stay short.
  for (int64_t begin = 0; begin < n; begin += 1024) {
    const int64_t end = std::min(begin + 1024, n);
    float lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
    }
    for (; i < end; ++i) lanes[0] += a[i] * b[i];
    total += static_cast<double>(std::accumulate(lanes, lanes + kLanes, 0.0f));
  }
  return total;
}

/// p = softmax(logits / T).
struct Softmax {
  double log_sum;  ///< log of the sum of exp(logits / T)
  int64_t best;
};

Softmax softmax(const RowOps& ops, const float* logits, int64_t n, double temperature, float* p) {
  const int64_t best = std::max<int64_t>(ops.argmax(logits, n), 0);
  const float shift = logits[best];
  const float sum = ops.exp_sum(logits, shift, static_cast<float>(1 / temperature), n, p);
  const float inverse = 1.0f / sum;
  for (int64_t i = 0; i < n; ++i) p[i] *= inverse;
  return {static_cast<double>(shift) / temperature + std::log(static_cast<double>(sum)), best};
}

}  // namespace

bool softmax_rows_supported(const at::Tensor& logits) {
  return logits.device().is_cpu() && logits.scalar_type() == at::kFloat;
}

double softmax_rows(const at::Tensor& teacher, at::Tensor& student, const SoftmaxRows& job,
                    std::vector<uint8_t>& agrees) {
  static const RowOps& ops = row_ops(choose_isa());
  const int64_t vocab = student.size(1);
  const double kl_share = 1 - job.cross_entropy;
  const float* const teacher_logits = teacher.data_ptr<float>();
  const at::Tensor p_all = at::empty_like(teacher);
  float* const p = p_all.data_ptr<float>();
  std::vector<double> negative_entropy(static_cast<size_t>(teacher.size(0)));
  std::vector<int64_t> best(negative_entropy.size());
  at::parallel_for(0, teacher.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Softmax s =
          softmax(ops, teacher_logits + r * vocab, vocab, job.temperature, p + r * vocab);
      const double mean = dot(p + r * vocab, teacher_logits + r * vocab, vocab);
      negative_entropy[static_cast<size_t>(r)] = mean / job.temperature - s.log_sum;
      best[static_cast<size_t>(r)] = s.best;
    }
  });

  const size_t start = agrees.size();
  agrees.resize(start + job.targets.size());
  std::vector<double> loss(job.targets.size());
  float* const logits_all = student.data_ptr<float>();
  at::parallel_for(0, student.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto row = static_cast<size_t>(r);
      const auto t = static_cast<size_t>(job.teacher_of[row]);
      const float* const target_p = p + job.teacher_of[row] * vocab;
      float* const x = logits_all + r * vocab;
      const double mean = dot(target_p, x, vocab) / job.temperature;
      const double chosen = static_cast<double>(x[job.targets[row]]) / job.temperature;
      const Softmax s = softmax(ops, x, vocab, job.temperature, x);
      agrees[start + row] = s.best == best[t];
      loss[row] = kl_share * (negative_entropy[t] - mean + s.log_sum) +
                  job.cross_entropy * (s.log_sum - chosen);
      const auto scale =
          static_cast<float>(static_cast<double>(job.weights[row]) * job.temperature);
      const float teacher_scale = scale * static_cast<float>(kl_share);
      for (int64_t i = 0; i < vocab; ++i) x[i] = scale * x[i] - teacher_scale * target_p[i];
      x[job.targets[row]] -= scale * static_cast<float>(job.cross_entropy);
    }
  });
  double total = 0;
  for (size_t r = 0; r < loss.size(); ++r) total += static_cast<double>(job.weights[r]) * loss[r];
  return total;
}

}  // namespace orthrus::train
