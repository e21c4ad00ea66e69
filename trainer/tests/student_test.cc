#include "trainer/fit/student.h"

#include <algorithm>
#include <cmath>

#include "trainer/tests/tiny_student.h"

namespace orthrus::train {
namespace {

RowPlanOptions tiny_plan() {
  RowPlanOptions options;
  options.row_tokens = 130;
  options.row_blocks = 12;
  return options;
}

StudentOptions tiny_options() {
  StudentOptions options;
  options.clip = 0;
  return options;
}

/// Central differences of the loss along a weight, in float64.
TEST(Student, GradientsEqualFiniteDifferences) {
  ModelTensors tensors = load_tensors(open_checkpoint(tiny_path()), DiffusionSource::kCheckpoint);
  tensors.config.mask_token_id = -1;  // the mask is trained too
  tensors.to(at::TensorOptions(at::kDouble));
  DualModel model(std::move(tensors));
  Student student(model, tiny_options());
  const Shard data = tiny_documents(6);
  const PlannedRow row = RowPlan(data, tiny_plan()).next();
  const double scale = 1.0 / static_cast<double>(row.blocks.size());
  student.accumulate(row, scale);
  std::vector<at::Tensor> gradients;  // later passes add to those of the parameters
  for (const Parameter& p : student.parameters()) {
    gradients.push_back(p.value.grad().clone().flatten());
  }
  int checked = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Parameter& p = student.parameters()[i];
    const at::Tensor& gradient = gradients[i];
    const at::Tensor flat = p.value.detach().view({-1});
    // The largest entry and one in the middle.
    for (const int64_t at : {gradient.abs().argmax().item<int64_t>(), flat.numel() / 2}) {
      const double before = flat[at].item<double>();
      const auto loss_at = [&](double value) {
        flat[at] = value;
        return student.accumulate(row, scale).loss;
      };
      constexpr double kStep = 1e-5;
      const double difference = (loss_at(before + kStep) - loss_at(before - kStep)) / (2 * kStep);
      flat[at] = before;
      const double exact = gradient[at].item<double>();
      EXPECT_NEAR(difference, exact, 1e-6 * std::max(1.0, std::abs(exact))) << p.name << " " << at;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2 * (4 * 4 + 1));
}

TEST(Student, FrozenTensorsStayBitIdenticalAndTrainedOnesMove) {
  DualModel model = tiny_model(DiffusionSource::kCopy);
  Student student(model, tiny_options());
  const Shard data = tiny_documents(6);
  RowPlan plan(data, tiny_plan());
  for (int64_t step = 1; step <= 3; ++step) {
    const PlannedRow row = plan.next();
    student.accumulate(row, 1.0 / static_cast<double>(row.blocks.size()));
    EXPECT_GT(student.update(1e-3, step), 0);
  }
  const DualModel fresh = tiny_model(DiffusionSource::kCopy);
  const ModelTensors& a = model.tensors();
  const ModelTensors& b = fresh.tensors();
  EXPECT_TRUE(same_bits(a.embedding, b.embedding));
  EXPECT_TRUE(same_bits(a.lm_head, b.lm_head));
  EXPECT_TRUE(same_bits(a.final_norm, b.final_norm));
  EXPECT_FALSE(same_bits(a.mask, b.mask));
  for (size_t i = 0; i < a.layers.size(); ++i) {
    const LayerTensors &x = a.layers[i], &y = b.layers[i];
    EXPECT_TRUE(same_bits(x.input_norm, y.input_norm));
    EXPECT_TRUE(same_bits(x.post_attention_norm, y.post_attention_norm));
    EXPECT_TRUE(same_bits(x.gate_up, y.gate_up));
    EXPECT_TRUE(same_bits(x.down, y.down));
    EXPECT_TRUE(same_bits(x.ar.qkv, y.ar.qkv));
    EXPECT_TRUE(same_bits(x.ar.o, y.ar.o));
    EXPECT_TRUE(same_bits(x.ar.q_norm, y.ar.q_norm));
    EXPECT_FALSE(same_bits(x.diff.qkv, y.diff.qkv));
    EXPECT_FALSE(same_bits(x.diff.o, y.diff.o));
    EXPECT_FALSE(same_bits(x.diff.q_norm, y.diff.q_norm));
  }
}

// Tokens behind an anchor, and other documents, change nothing in its block.
TEST(Student, AnchorsNeverSeeTheirFuture) {
  const DualModel model = tiny_model(DiffusionSource::kCheckpoint);
  const at::NoGradGuard no_grad;
  PackedRow row;
  for (int64_t i = 0; i < 90; ++i) row.tokens.push_back((i * i * 13 + 5) % 1000);
  row.documents = {{0, 60}, {60, 90}};
  const std::vector<Block> blocks{{3, 0}, {20, 0}, {21, 0}, {50, 0}, {70, 1}};
  const at::Tensor before = model.forward_diffusion(row, model.forward_ar(row), blocks, 8).clone();
  for (int64_t i = 22; i < 60; ++i) row.tokens[static_cast<size_t>(i)] = (i * 17) % 1000;
  const at::Tensor after = model.forward_diffusion(row, model.forward_ar(row), blocks, 8);
  for (const int64_t unchanged : {0, 1, 2, 4}) {
    EXPECT_TRUE(same_bits(before[unchanged], after[unchanged])) << unchanged;
  }
  EXPECT_FALSE(same_bits(before[3], after[3]));
}

/// The loss of one block, by the number of its rows that count.
class OneBlock {
 public:
  explicit OneBlock(const StudentOptions& options)
      : model_(tiny_model(DiffusionSource::kCheckpoint)), student_(model_, options) {
    for (int64_t i = 0; i < 60; ++i) row_.tokens.push_back((i * i * 13 + 5) % 1000);
    row_.documents = {{0, 60}};
  }
  StepStats stats(int64_t targets) { return student_.accumulate({row_, {{{20, 0}, targets}}}, 1); }
  double loss(int64_t targets) { return targets == 0 ? 0 : stats(targets).loss; }
  /// What the row adds to the loss.
  double share(int64_t i) { return loss(i + 1) - loss(i); }
  /// KL(AR row || row i of the block), by its definition.
  double divergence(int64_t i) const {
    const at::NoGradGuard no_grad;
    const ArPass ar = model_.forward_ar(row_);
    const std::vector<Block> blocks{{20, 0}};
    const at::Tensor hidden = model_.forward_diffusion(row_, ar, blocks, 8)[0];
    const at::Tensor p = model_.logits(ar.hidden.narrow(0, 20 + i, 1)).to(at::kDouble);
    const at::Tensor q = model_.logits(hidden.narrow(0, i, 1)).to(at::kDouble);
    return (p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum().item<double>();
  }

 private:
  DualModel model_;
  Student student_;
  PackedRow row_;
};

TEST(Student, RowsOfABlockWeighAsTheDecaySays) {
  StudentOptions options = tiny_options();
  for (const double decay : {0.0, 2.0, 5.0}) {
    options.position_decay = decay;
    OneBlock block(options);
    double sum = 0;
    for (int i = 0; i < 7; ++i) sum += decay > 0 ? std::exp(-i / decay) : 1;
    for (int i = 0; i < 7; ++i) {
      const double weight = (decay > 0 ? std::exp(-i / decay) : 1) / sum;
      const double expected = weight * block.divergence(i);
      EXPECT_NEAR(block.share(i), expected, 1e-5 + 1e-4 * expected) << decay << " " << i;
    }
  }
}

// The last row has a target too: the AR row at its own position.
TEST(Student, TheLastRowIsTrainedWhereItIsAskedFor) {
  StudentOptions options = tiny_options();
  options.position_decay = 0;
  options.train_last = true;
  OneBlock block(options);
  const double expected = block.divergence(7) / 8;
  EXPECT_NEAR(block.share(7), expected, 1e-5 + 1e-4 * expected);
  EXPECT_EQ(block.stats(8).rows[7], 1);
  EXPECT_EQ(block.stats(8).accepted, block.stats(7).accepted);  // no draft comes of it

  RowPlanOptions plan = tiny_plan();
  for (const bool train_last : {false, true}) {
    plan.train_last = train_last;
    const Shard data = tiny_documents(6);
    int64_t most = 0;
    for (const TrainBlock& b : RowPlan(data, plan).next().blocks) most = std::max(most, b.targets);
    EXPECT_EQ(most, train_last ? 8 : 7);
  }
}

TEST(Student, LossFallsOnTheSameRow) {
  DualModel model = tiny_model(DiffusionSource::kCopy);
  Student student(model, tiny_options());
  const Shard data = tiny_documents(6);
  const PlannedRow row = RowPlan(data, tiny_plan()).next();
  const double scale = 1.0 / static_cast<double>(row.blocks.size());
  const StepStats first = student.accumulate(row, scale);
  StepStats last;
  for (int64_t step = 1; step <= 30; ++step) {
    student.update(2e-3, step);
    last = student.accumulate(row, scale);
  }
  EXPECT_LT(last.loss, 0.5 * first.loss);
  EXPECT_GE(last.tokens_per_cycle(), first.tokens_per_cycle());
}

}  // namespace
}  // namespace orthrus::train
