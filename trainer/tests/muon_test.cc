#include "trainer/fit/muon.h"

#include "trainer/tests/fit_runs.h"

namespace orthrus::train {
namespace {

void expect_near_orthogonal(const at::Tensor& matrix) {
  const at::Tensor values = at::linalg_svdvals(matrix).contiguous();
  EXPECT_GT(values.min().item<double>(), 0.6);
  EXPECT_LT(values.max().item<double>(), 1.25);
}

TEST(Muon, TheIterationMakesSingularValuesAlike) {
  at::manual_seed(1);
  const at::Tensor wide = at::randn({24, 64}), tall = at::randn({64, 24}) * 1e-3;
  expect_near_orthogonal(orthogonalized(wide));
  expect_near_orthogonal(orthogonalized(tall));
  // In the basis of the matrix itself: the product with its transpose is positive and symmetric.
  const at::Tensor product = at::mm(orthogonalized(wide), wide.t());
  EXPECT_TRUE(at::allclose(product, product.t(), 1e-3, 1e-3));
  EXPECT_GT(at::linalg_eigvalsh(product).min().item<double>(), 0);
}

/// q, k and v lie in one matrix and are updated as three.
TEST(Muon, EveryProjectionGetsAnOrthogonalUpdateOfItsOwnScale) {
  at::manual_seed(2);
  ModelConfig config;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 16;
  const auto parameter = [](const std::string& name, at::Tensor value, double gradient_scale) {
    value.requires_grad_();
    value.mutable_grad() = at::randn_like(value.detach()) * gradient_scale;
    return Parameter{
        name, value, at::zeros_like(value.detach()), at::zeros_like(value.detach()), {}};
  };
  std::vector<Parameter> parameters{parameter("layers.0.qkv", at::zeros({64, 48}), 1),
                                    parameter("layers.0.o", at::zeros({48, 32}), 1e-4),
                                    parameter("mask", at::zeros({48}), 1)};
  give_to_muon(parameters, config);
  EXPECT_EQ(parameters[0].matrices, (std::vector<int64_t>{32, 16, 16}));
  EXPECT_EQ(parameters[1].matrices, (std::vector<int64_t>{48}));
  EXPECT_TRUE(parameters[2].matrices.empty());
  EXPECT_TRUE(parameters[2].square.defined());
  constexpr double kRate = 0.01;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(parameters[i].square.defined());
    const at::Tensor gradient = parameters[i].value.grad().clone();
    muon_step(parameters[i], {}, kRate);
    EXPECT_FALSE(parameters[i].value.grad().defined());
    int64_t row = 0;
    for (const int64_t rows : parameters[i].matrices) {
      const at::Tensor update = parameters[i].value.detach().narrow(0, row, rows);
      expect_near_orthogonal(update / (-kRate * 0.2 * std::sqrt(48.0)));
      EXPECT_LT((update * gradient.narrow(0, row, rows)).sum().item<double>(), 0);  // downhill
      row += rows;
    }
  }
}

TEST_F(Fit, MuonLearnsAndItsMomentumIsInTheCheckpoint) {
  const std::vector<std::string> schedule{"--steps", "10",        "--optimizer",
                                          "muon",    "--adapter", "copy"};
  EXPECT_EQ(wait(start("straight", schedule)), 0);
  const pid_t killed = start("killed", schedule);
  wait_for_steps("killed", 4);
  ::kill(killed, SIGKILL);
  EXPECT_EQ(wait(killed), 128 + SIGKILL);
  EXPECT_EQ(wait(start("killed", {"--steps", "10", "--adapter", "copy", "--resume"})), 2);
  std::vector<std::string> rest = schedule;
  rest.push_back("--resume");
  EXPECT_EQ(wait(start("killed", rest)), 0);
  const auto expected = losses("straight");
  EXPECT_EQ(losses("killed"), expected);
  ASSERT_EQ(expected.size(), 10u);
  EXPECT_LT(expected.back().second, 0.9 * expected.front().second);
}

}  // namespace
}  // namespace orthrus::train
