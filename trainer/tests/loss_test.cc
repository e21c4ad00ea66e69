// The chunked loss against autograd over whole [rows, vocab] tensors.
#include "trainer/fit/distillation_loss.h"

#include <gtest/gtest.h>

namespace orthrus::train {
namespace {

struct Reference {
  double loss;
  at::Tensor gradient;
};

Reference reference(const LossRows& rows, const at::Tensor& lm_head, const LossOptions& options) {
  const double t = options.temperature;
  const at::Tensor h = rows.student.to(at::kDouble).detach().requires_grad_();
  const at::Tensor head = lm_head.to(at::kDouble);
  const at::Tensor teacher =
      at::mm(rows.teacher.to(at::kDouble), head.t()).index_select(0, at::tensor(rows.teacher_rows));
  const at::Tensor log_p = at::log_softmax(teacher / t, -1);
  const at::Tensor log_q = at::log_softmax(at::mm(h, head.t()) / t, -1);
  const at::Tensor kl = (log_p.exp() * (log_p - log_q)).sum(-1);
  const at::Tensor ce = -log_q.gather(1, at::tensor(rows.targets).unsqueeze(1)).squeeze(1);
  const at::Tensor weights = at::tensor(rows.weights).to(at::kDouble);
  const at::Tensor loss =
      t * t * (weights * ((1 - options.cross_entropy) * kl + options.cross_entropy * ce)).sum();
  loss.backward();
  return {loss.item<double>(), h.grad()};
}

LossRows random_rows(int64_t vocab) {
  at::manual_seed(11);
  LossRows rows;
  rows.student = at::randn({40, 12}) * 2;
  rows.teacher = at::randn({30, 12}) * 2;
  for (int64_t i = 0; i < 40; ++i) {
    rows.teacher_rows.push_back(2 + i * i / 80);
    rows.targets.push_back((i * 37) % vocab);
    rows.weights.push_back(0.1f + 0.02f * static_cast<float>(i));
  }
  return rows;
}

TEST(DistillationLoss, GradientEqualsAutograd) {
  constexpr int64_t kVocab = 203;
  const LossRows rows = random_rows(kVocab);
  const at::Tensor head = at::randn({kVocab, 12});
  for (const double temperature : {1.0, 2.5}) {
    for (const double cross_entropy : {0.0, 0.3, 1.0}) {
      const LossOptions base{temperature, cross_entropy, 0};
      const Reference expected = reference(rows, head, base);
      for (const int64_t chunk_rows : {1, 7, 100}) {
        LossOptions options = base;
        options.chunk_floats = chunk_rows * kVocab;
        const LossResult got = distillation_loss(rows, Linear(head), Precision::kFloat32, options);
        EXPECT_NEAR(got.loss, expected.loss, 1e-5 * std::abs(expected.loss));
        const double worst =
            (got.gradient.to(at::kDouble) - expected.gradient).abs().max().item<double>();
        EXPECT_LE(worst, 1e-5 * expected.gradient.abs().max().item<double>());
      }
    }
  }
}

// Doubles take the way of other devices.
TEST(DistillationLoss, FormForOtherDevicesEqualsAutograd) {
  constexpr int64_t kVocab = 203;
  LossRows rows = random_rows(kVocab);
  const at::Tensor head = at::randn({kVocab, 12});
  const LossOptions options{2.0, 0.25, 9 * kVocab};
  const Reference expected = reference(rows, head, options);
  const std::vector<uint8_t> agrees =
      distillation_loss(rows, Linear(head), Precision::kFloat32, options).agrees;
  rows.student = rows.student.to(at::kDouble);
  rows.teacher = rows.teacher.to(at::kDouble);
  const LossResult got =
      distillation_loss(rows, Linear(head.to(at::kDouble)), Precision::kFloat32, options);
  EXPECT_NEAR(got.loss, expected.loss, 1e-6 * std::abs(expected.loss));
  EXPECT_LE((got.gradient - expected.gradient).abs().max().item<double>(), 1e-6);
  EXPECT_EQ(got.agrees, agrees);
}

TEST(DistillationLoss, EqualRowsHaveNoLossAndAgree) {
  at::manual_seed(2);
  LossRows rows;
  rows.student = at::randn({5, 8});
  rows.teacher = rows.student;
  rows.teacher_rows = {0, 1, 2, 3, 4};
  rows.targets.assign(5, 0);
  rows.weights.assign(5, 1.0f);
  const LossResult result =
      distillation_loss(rows, Linear(at::randn({100, 8})), Precision::kFloat32, {});
  EXPECT_NEAR(result.loss, 0, 1e-5);
  EXPECT_LE(result.gradient.abs().max().item<double>(), 1e-6);
  EXPECT_EQ(result.agrees, std::vector<uint8_t>(5, 1));
}

}  // namespace
}  // namespace orthrus::train
