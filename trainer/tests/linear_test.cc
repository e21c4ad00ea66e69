// Products and row functions against float64, forward and backward.
#include "trainer/model/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "trainer/model/bf16_gemm.h"
#include "trainer/model/row_functions.h"

namespace orthrus::train {
namespace {

double worst(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

at::Tensor rounded(const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); }

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::full({a.size(0), b.size(1)}, 1e9f);
  const Bf16Panels panels(b.data_ptr<float>(), b.size(0), b.size(1), b.stride(0), b.stride(1));
  bf16_gemm(Bf16Rows(a.data_ptr<float>(), a.size(0), a.size(1)), panels, out.data_ptr<float>());
  return out;
}

// Products of rounded factors are exact in float32; only the order of their sums is open.
TEST(Bf16Gemm, IsTheProductOfTheRoundedFactors) {
  if (!bf16_gemm_supported()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  at::manual_seed(1);
  const int64_t sizes[][3] = {{1, 1, 1},    {5, 7, 33},    {12, 64, 32},   {13, 31, 16},
                              {25, 96, 70}, {3, 1601, 48}, {40, 3072, 100}};
  for (const auto& [rows, inner, cols] : sizes) {
    const at::Tensor a = at::randn({rows, inner}), b = at::randn({inner, cols});
    const at::Tensor expected = at::mm(rounded(a), rounded(b));
    const double limit = 1e-5 * std::sqrt(static_cast<double>(inner));
    EXPECT_LE(worst(product(a, b), expected), limit) << rows << " " << inner << " " << cols;
    const at::Tensor transposed = b.t().contiguous();
    EXPECT_EQ(worst(product(a, b), product(a, transposed.t())), 0);
  }
}

TEST(Bf16Gemm, NotANumberStaysOne) {
  if (!bf16_gemm_supported()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  at::Tensor a = at::ones({2, 4}), b = at::ones({4, 3});
  b[2][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(product(a, b)[0][1].item<float>()));
  EXPECT_TRUE(std::isnan(product(a, b.t().contiguous().t())[0][1].item<float>()));
  EXPECT_EQ(product(a, b)[0][0].item<float>(), 4);
}

struct Gradients {
  at::Tensor out, x, weight;
};

Gradients run(const at::Tensor& x0, const at::Tensor& weight0, const at::Tensor& dy,
              const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& fn) {
  const at::Tensor x = x0.detach().clone().requires_grad_();
  const at::Tensor weight = weight0.detach().clone().requires_grad_();
  const at::Tensor out = fn(x, weight);
  out.backward(dy.to(out.scalar_type()));
  return {out.detach(), x.grad(), weight.grad()};
}

TEST(Linear, GradientsAreThoseOfAutograd) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({37, 48}), weight = at::randn({40, 48}), dy = at::randn({37, 40});
  const auto plain = [](const at::Tensor& a, const at::Tensor& w) { return at::mm(a, w.t()); };
  const Gradients exact = run(x.to(at::kDouble), weight.to(at::kDouble), dy, plain);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    std::optional<Linear> linear;
    const Gradients got = run(x, weight, dy, [&](const at::Tensor& a, const at::Tensor& w) {
      linear.emplace(w);
      return (*linear)(a, precision);
    });
    // bfloat16 keeps 8 bits of each factor.
    const double tolerance = precision == Precision::kFloat32 ? 1e-4 : 0.25;
    EXPECT_LE(worst(got.out, exact.out), tolerance);
    EXPECT_LE(worst(got.x, exact.x), tolerance);
    EXPECT_LE(worst(got.weight, exact.weight), tolerance);
    EXPECT_GT(worst(got.out, exact.out), 0);
  }
}

TEST(Linear, FollowsChangesOfItsWeight) {
  at::Tensor weight = at::ones({3, 2});
  const Linear linear(weight);
  const at::Tensor x = at::ones({1, 2});
  EXPECT_EQ(linear.forward(x, Precision::kBfloat16)[0][1].item<float>(), 2);
  weight.narrow(0, 1, 1).mul_(3);
  EXPECT_EQ(linear.forward(x, Precision::kBfloat16)[0][1].item<float>(), 6);
  EXPECT_EQ(linear.input_gradient(at::ones({1, 3}), Precision::kBfloat16)[0][0].item<float>(), 5);
}

TEST(RowFunctions, EqualFloat64ForwardAndBack) {
  at::manual_seed(3);
  const auto norm = [](const at::Tensor& x, const at::Tensor& w) { return rms_norm(x, w, 1e-5); };
  for (const int64_t n : {5, 16, 64, 100}) {
    const at::Tensor x = at::randn({20, n}) * 3, weight = at::randn({n}), dy = at::randn({20, n});
    const Gradients got = run(x, weight, dy, norm);
    const Gradients exact = run(x.to(at::kDouble), weight.to(at::kDouble), dy, norm);
    const Gradients reference =
        run(x.to(at::kDouble), weight.to(at::kDouble), dy,
            [](const at::Tensor& a, const at::Tensor& w) {
              return a * at::rsqrt((a * a).mean(-1, true) + 1e-5) * w;  // by torch's own autograd
            });
    for (const Gradients* g : {&got, &exact}) {
      const double tolerance = g == &got ? 3e-5 : 1e-12;
      EXPECT_LE(worst(g->out, reference.out), tolerance);
      EXPECT_LE(worst(g->x, reference.x), tolerance);
      EXPECT_LE(worst(g->weight, reference.weight), tolerance);
    }
  }
}

TEST(RowFunctions, RotationAndGateEqualFloat64) {
  at::manual_seed(4);
  const at::Tensor none = at::ones({1});
  const at::Tensor angle = at::randn({9, 1, 8});
  const auto turn = [&](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor a = angle.to(x.scalar_type());
    return rotate(x * w, a.cos(), a.sin());
  };
  const auto reference = [&](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor a = angle.to(x.scalar_type()), c = a.cos(), s = a.sin(), y = x * w;
    const at::Tensor p = y.narrow(2, 0, 8), q = y.narrow(2, 8, 8);
    return at::cat({p * c - q * s, q * c + p * s}, 2);
  };
  const auto gate = [](const at::Tensor& x, const at::Tensor& w) { return silu_mul(x * w); };
  const auto gate_reference = [](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = x * w, g = y.narrow(1, 0, 21);
    return g / (1 + (-g).exp()) * y.narrow(1, 21, 21);
  };
  const auto compare = [&](const at::Tensor& x, const at::Tensor& dy, auto fn, auto expected) {
    const Gradients exact = run(x.to(at::kDouble), none.to(at::kDouble), dy, expected);
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const Gradients got = run(x.to(type), none.to(type), dy, fn);
      const double tolerance = type == at::kFloat ? 1e-5 : 1e-12;
      EXPECT_LE(worst(got.out, exact.out), tolerance);
      EXPECT_LE(worst(got.x, exact.x), tolerance);
    }
  };
  compare(at::randn({9, 3, 16}), at::randn({9, 3, 16}), turn, reference);
  compare(at::randn({9, 42}), at::randn({9, 21}), gate, gate_reference);
}

}  // namespace
}  // namespace orthrus::train
