#include "kernels/row_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace orthrus {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kPoison = -123.25f;  // beyond the end of every output

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kIsas) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> normals(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

const std::vector<int64_t> kSizes = {1,  2,  7,  15,  16,  17,  31,  32,   33,
                                     63, 64, 65, 100, 127, 128, 576, 1000, 1024};

class RowOpsTest : public testing::TestWithParam<Isa> {
 protected:
  const RowOps& ops_ = row_ops(GetParam());

  float exp_of(float x) {
    float out;
    ops_.exp_sum(&x, 0.0f, 1.0f, 1, &out);
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, RowOpsTest, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return std::string(isa_name(p.param)); });

TEST_P(RowOpsTest, ExpIsWithinItsStatedError) {
  // Every 61st float of [-87, 88]: 36 million of them, of every exponent.
  constexpr size_t kBatch = 4096;
  std::vector<float> x, out(kBatch);
  double worst = 0;
  auto flush = [&] {
    ops_.exp_sum(x.data(), 0.0f, 1.0f, static_cast<int64_t>(x.size()), out.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::fabs(out[i] - exact) / exact);
    }
    x.clear();
  };
  for (uint32_t sign : {0u, 0x80000000u}) {
    const uint32_t last = std::bit_cast<uint32_t>(sign ? 87.0f : 88.0f);
    for (uint64_t bits = 0; bits <= last; bits += 61) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) | sign));
      if (x.size() == kBatch) flush();
    }
  }
  flush();
  EXPECT_LE(worst, 0x1p-22);
  RecordProperty("worst_relative_error", std::to_string(worst));
}

TEST_P(RowOpsTest, ExpAtItsEnds) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(-kInfinity), 0.0f);
  EXPECT_EQ(exp_of(-104.0f), 0.0f);
  EXPECT_EQ(exp_of(-3e38f), 0.0f);
  EXPECT_EQ(exp_of(kInfinity), kInfinity);
  EXPECT_EQ(exp_of(100.0f), kInfinity);
  EXPECT_TRUE(std::isnan(exp_of(kNaN)));
  EXPECT_FALSE(std::signbit(exp_of(-200.0f)));
}

TEST_P(RowOpsTest, RmsNormOfEverySize) {
  for (int64_t n : kSizes) {
    const size_t size = static_cast<size_t>(n);
    auto x = normals(size, 1), weight = normals(size, 2);
    std::vector<float> out(size + 1, kPoison);
    ops_.rms_norm(x.data(), weight.data(), 1e-6f, n, out.data());
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    for (size_t i = 0; i < size; ++i) {
      const double expected = x[i] * scale * weight[i];
      // The sum runs n / 64 + 8 deep, and half of its error reaches its root.
      const double tolerance = std::fabs(expected) * 0x1p-24 * (static_cast<double>(n) / 64 + 16);
      ASSERT_NEAR(out[i], expected, tolerance) << n << " " << i;
    }
    EXPECT_EQ(out[size], kPoison);
  }
}

TEST_P(RowOpsTest, RotateTurnsHalfSplitPairs) {
  for (int64_t n : {2, 16, 32, 48, 64, 80, 128}) {
    const size_t half = static_cast<size_t>(n / 2);
    auto head = normals(2 * half, 3);
    head.push_back(kPoison);
    const auto before = head;
    std::vector<float> cos(half), sin(half);
    for (size_t i = 0; i < half; ++i) {
      cos[i] = std::cos(static_cast<float>(i + 1) * 0.7f);
      sin[i] = std::sin(static_cast<float>(i + 1) * 0.7f);
    }
    ops_.rotate(head.data(), cos.data(), sin.data(), n);
    for (size_t i = 0; i < half; ++i) {
      const double a = before[i], b = before[i + half];
      ASSERT_NEAR(head[i], a * cos[i] - b * sin[i], (std::fabs(a) + std::fabs(b)) * 0x1p-23);
      ASSERT_NEAR(head[i + half], b * cos[i] + a * sin[i], (std::fabs(a) + std::fabs(b)) * 0x1p-23);
    }
    EXPECT_EQ(head[2 * half], kPoison);
  }
}

TEST_P(RowOpsTest, SiluMulOfEverySize) {
  for (int64_t n : kSizes) {
    const size_t size = static_cast<size_t>(n);
    auto gate = normals(size, 4, 8.0f), up = normals(size, 5);
    std::vector<float> out(size + 1, kPoison);
    ops_.silu_mul(gate.data(), up.data(), n, out.data());
    for (size_t i = 0; i < size; ++i) {
      const double g = gate[i];
      const double expected = g / (1 + std::exp(-g)) * up[i];
      ASSERT_NEAR(out[i], expected, std::fabs(expected) * 0x1p-21) << n << " " << i;
    }
    EXPECT_EQ(out[size], kPoison);
  }
}

TEST_P(RowOpsTest, SiluMulFarFromZero) {
  const float gate[] = {-1e30f, -200.0f, -88.5f, 200.0f, 1e30f, 0.0f};
  const float up[] = {1, 1, 1, 2, 1, 5};
  float out[6];
  ops_.silu_mul(gate, up, 6, out);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(out[i], 0.0f, 1e-36f);
  EXPECT_EQ(out[3], 400.0f);
  EXPECT_EQ(out[4], 1e30f);
  EXPECT_EQ(out[5], 0.0f);
}

TEST_P(RowOpsTest, AddIsExactlyRounded) {
  for (int64_t n : kSizes) {
    const size_t size = static_cast<size_t>(n);
    auto x = normals(size, 6), y = normals(size, 7);
    x.push_back(kPoison);
    const auto before = x;
    ops_.add(x.data(), y.data(), n);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(x[i], before[i] + y[i]);
    EXPECT_EQ(x[size], kPoison);
  }
}

TEST_P(RowOpsTest, ArgmaxTakesTheLowestOfEquals) {
  for (int64_t n : kSizes) {
    auto x = normals(static_cast<size_t>(n), 8);
    for (int64_t at = 0; at < n; at += std::max<int64_t>(1, n / 13)) {
      auto y = x;
      y[static_cast<size_t>(at)] = 50.0f;
      y[static_cast<size_t>(n - 1)] = 50.0f;
      y[static_cast<size_t>(at + (n - at) / 2)] = 50.0f;
      y.push_back(kInfinity);  // beyond the end
      ASSERT_EQ(ops_.argmax(y.data(), n), at) << n;
      ASSERT_EQ(ops_.max(y.data(), n), 50.0f);
    }
  }
}

TEST_P(RowOpsTest, ArgmaxOfNegativesAndMinusInfinity) {
  std::vector<float> x(37, -kInfinity);
  EXPECT_EQ(ops_.argmax(x.data(), 37), 0);
  EXPECT_EQ(ops_.max(x.data(), 37), -kInfinity);
  x[36] = -5.0f;
  EXPECT_EQ(ops_.argmax(x.data(), 37), 36);
  x[20] = -5.0f;
  EXPECT_EQ(ops_.argmax(x.data(), 37), 20);
  EXPECT_EQ(ops_.max(x.data(), 37), -5.0f);
  const float zeros[] = {-0.0f, 0.0f};
  EXPECT_EQ(ops_.argmax(zeros, 2), 0);
}

TEST_P(RowOpsTest, ArgmaxReportsNaNAndInfinityAnywhere) {
  for (int64_t n : {1, 15, 16, 17, 40}) {
    for (int64_t at = 0; at < n; ++at) {
      for (float bad : {kNaN, -kNaN, kInfinity}) {
        auto x = normals(static_cast<size_t>(n), 9);
        x[static_cast<size_t>(at)] = bad;
        ASSERT_EQ(ops_.argmax(x.data(), n), -1) << n << " " << at;
      }
    }
  }
  EXPECT_EQ(ops_.argmax(nullptr, 0), -1);
}

TEST_P(RowOpsTest, MaxIgnoresNaN) {
  std::vector<float> x = normals(40, 10);
  x[3] = 9.0f;
  for (size_t i : {size_t{0}, size_t{19}, size_t{33}, size_t{39}}) x[i] = kNaN;
  EXPECT_EQ(ops_.max(x.data(), 40), 9.0f);
  EXPECT_EQ(ops_.max(nullptr, 0), -kInfinity);
}

TEST_P(RowOpsTest, ExpSumOfEverySize) {
  for (int64_t n : kSizes) {
    const size_t size = static_cast<size_t>(n);
    auto x = normals(size, 11, 3.0f);
    std::vector<float> out(size + 1, kPoison);
    const float sum = ops_.exp_sum(x.data(), 2.5f, 1.25f, n, out.data());
    double total = 0;
    for (size_t i = 0; i < size; ++i) {
      const float argument = (x[i] - 2.5f) * 1.25f;
      const double expected = std::exp(static_cast<double>(argument));
      ASSERT_NEAR(out[i], expected, expected * 0x1p-22);
      total += out[i];
    }
    EXPECT_NEAR(sum, total, total * 0x1p-24 * (static_cast<double>(n) / 64 + 8));
    EXPECT_EQ(out[size], kPoison);
    // In place, and with other values beyond the end: the same bits.
    x.resize(size + 16, kNaN);
    EXPECT_EQ(ops_.exp_sum(x.data(), 2.5f, 1.25f, n, x.data()), sum);
    EXPECT_EQ(std::memcmp(x.data(), out.data(), size * sizeof(float)), 0);
  }
}

// The value of an element does not depend on where in a vector, or in a tail, it stands.
TEST_P(RowOpsTest, ElementsDoNotDependOnTheirPlace) {
  auto x = normals(64, 12, 5.0f), up = normals(64, 13);
  std::vector<float> whole(64), part(64);
  ops_.silu_mul(x.data(), up.data(), 64, whole.data());
  for (int64_t begin = 0; begin < 40; begin += 3) {
    for (int64_t n = 1; n <= 24; ++n) {
      const auto bytes = static_cast<size_t>(n) * sizeof(float);
      ops_.silu_mul(x.data() + begin, up.data() + begin, n, part.data());
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + begin, bytes), 0);
    }
  }
}

}  // namespace
}  // namespace orthrus
