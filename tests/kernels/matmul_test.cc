#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/dtype.h"
#include "kernels/matmul.h"
#include "kernels/matrix_fixtures.h"
#include "kernels/output_collector.h"

namespace orthrus {
namespace {

struct Case {
  TensorType type;
  int64_t outputs;
  int64_t inputs;
};

// Odd sizes and the shapes of SmolLM2's layers; block types of 256 need multiples of it.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (TensorType type : matrix_types()) {
    if (traits(type).block_elements == 256) {
      for (int64_t outputs : {1, 17, 192}) all.push_back({type, outputs, 512});
      continue;
    }
    for (int64_t inputs : {32, 96, 576}) {
      for (int64_t outputs : {1, 17, 192}) all.push_back({type, outputs, inputs});
    }
  }
  return all;
}

std::string describe(const Case& c, Isa isa) {
  return std::string(traits(c.type).name) + " " + std::to_string(c.outputs) + " x " +
         std::to_string(c.inputs) + " " + std::string(isa_name(isa));
}

// x [rows, inputs] times the matrix: [rows, outputs], in one call with one task.
std::vector<float> product(Isa isa, ThreadPool& pool, const PackedMatrix& matrix,
                           const std::vector<float>& x, const float* bias = nullptr) {
  const ComputeContext context{isa, pool};
  const int64_t rows = static_cast<int64_t>(x.size()) / matrix.cols();
  Activations activations;
  activations.set(context, x.data(), matrix.cols(), rows, matrix.cols(), activation_forms(matrix));
  std::vector<float> out(static_cast<size_t>(rows * matrix.rows()));
  const MatmulTask task{&matrix, 0, rows, out.data(), matrix.rows(), bias};
  matmul(context, activations, {&task, 1});
  return out;
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

TEST(Matmul, AgreesWithDoubleArithmetic) {
  ThreadPool pool(2);
  for (Isa isa : supported_isas()) {
    for (const Case& c : cases()) {
      TestMatrix source(c.type, c.outputs, c.inputs);
      const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
      const int64_t rows = 7;
      const auto x = random_activations(static_cast<size_t>(rows * c.inputs), 5);
      std::vector<float> bias(static_cast<size_t>(c.outputs));
      std::iota(bias.begin(), bias.end(), -3.0f);
      const auto out = product(isa, pool, matrix, x, bias.data());
      std::vector<float> weights(static_cast<size_t>(c.inputs));
      const bool quantized = activation_forms(matrix).groups;
      const bool rounded = isa == Isa::kAvx512Bf16 && activation_forms(matrix).bf16;
      for (int64_t n = 0; n < c.outputs; ++n) {
        unpack_row(matrix, n, weights.data());
        for (int64_t i = 0; i < rows; ++i) {
          double expected = bias[static_cast<size_t>(n)];
          double magnitude = std::fabs(expected);
          double rounding = 0;  // of activations: half a step of their group each
          for (int64_t begin = 0; begin < c.inputs; begin += 32) {
            const int64_t end = std::min(begin + 32, c.inputs);
            double most = 0;
            for (int64_t k = begin; k < end; ++k) {
              most = std::max(most, std::fabs(double{x[static_cast<size_t>(i * c.inputs + k)]}));
            }
            for (int64_t k = begin; k < end; ++k) {
              const double w = weights[static_cast<size_t>(k)];
              const float input = x[static_cast<size_t>(i * c.inputs + k)];
              const double v = rounded ? bf16_to_f32(f32_to_bf16(input)) : input;
              expected += w * v;
              magnitude += std::fabs(w * v);
              rounding += std::fabs(w) * most / 127 * 0.5001;
            }
          }
          // A sum of n products in floats errs by less than n * 2^-24 times the sum of magnitudes;
          // with an offset, the two large terms that cancel are at most 32 times that.
          double tolerance = magnitude * static_cast<double>(c.inputs + 8) * 0x1p-24;
          if (quantized) tolerance = tolerance * 32 + rounding;
          ASSERT_NEAR(out[static_cast<size_t>(i * c.outputs + n)], expected, tolerance)
              << describe(c, isa) << " row " << i << " output " << n;
        }
      }
    }
  }
}

// Rows [0, rows) of x one by one: what every other way to compute them has to equal bit for bit.
std::vector<float> rows_alone(Isa isa, ThreadPool& pool, const PackedMatrix& matrix,
                              const std::vector<float>& x) {
  std::vector<float> out;
  for (auto row = x.begin(); row != x.end(); row += matrix.cols()) {
    const auto one = product(isa, pool, matrix, {row, row + matrix.cols()});
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

TEST(Matmul, RowsAreTheSameBitsForEveryRowCount) {
  ThreadPool pool(1);
  constexpr int64_t kMost = 65;
  for (Isa isa : supported_isas()) {
    for (TensorType type : matrix_types()) {
      // Six panels, the last nearly empty: every tile width of every path has its turn.
      const Case c{type, 81, traits(type).block_elements == 256 ? 256 : 96};
      TestMatrix source(c.type, c.outputs, c.inputs);
      const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
      const auto x = random_activations(static_cast<size_t>(kMost * c.inputs), 6);
      const auto alone = rows_alone(isa, pool, matrix, x);
      for (int64_t rows = 1; rows <= kMost; ++rows) {
        const auto out = product(isa, pool, matrix, {x.begin(), x.begin() + rows * c.inputs});
        ASSERT_TRUE(same_bits(out.data(), alone.data(), rows * c.outputs))
            << describe(c, isa) << " rows " << rows;
      }
    }
  }
}

TEST(Matmul, RowsAreTheSameBitsInAnyOrderOnAnyThreads) {
  constexpr int64_t kRows = 23;
  std::vector<int64_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(threads)));
    for (Isa isa : supported_isas()) {
      for (const Case& c : cases()) {
        TestMatrix source(c.type, c.outputs, c.inputs);
        const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
        const auto x = random_activations(static_cast<size_t>(kRows * c.inputs), 7);
        std::vector<float> shuffled;
        for (int64_t row : order) {
          shuffled.insert(shuffled.end(), x.begin() + row * c.inputs,
                          x.begin() + (row + 1) * c.inputs);
        }
        const auto out = product(isa, pool, matrix, x);
        const auto other = product(isa, pool, matrix, shuffled);
        for (int64_t i = 0; i < kRows; ++i) {
          ASSERT_TRUE(same_bits(other.data() + i * c.outputs,
                                out.data() + order[static_cast<size_t>(i)] * c.outputs, c.outputs))
              << describe(c, isa) << " threads " << threads << " row " << i;
        }
      }
    }
  }
}

TEST(Matmul, ManyThreadsGiveTheSameBits) {
  const auto x = random_activations(5 * 96, 11);
  for (const TensorType type : {TensorType::kBF16, TensorType::kQ4_0}) {
    ThreadPool one(1);
    const PackedMatrix matrix = pack(TestMatrix(type, 333, 96).source(), WeightFormat::kAuto, one);
    const auto expected = product(choose_isa(), one, matrix, x);
    for (int threads : {7, 17, 64}) {  // 64: more than there are pairs of panels
      ThreadPool pool(threads);
      const auto out = product(choose_isa(), pool, matrix, x);
      ASSERT_TRUE(same_bits(out.data(), expected.data(), 5 * 333)) << threads << " threads";
    }
  }
}

// Only its integer sums are other instructions, and those are exact.
TEST(Matmul, AvxVnniHasTheBitsOfAvx2) {
  if (!isa_supported(Isa::kAvxVnni)) GTEST_SKIP() << "this CPU has no AVX-VNNI";
  ThreadPool pool(1);
  constexpr int64_t kRows = 7;
  for (const Case& c : cases()) {
    TestMatrix source(c.type, c.outputs, c.inputs);
    const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
    const auto x = random_activations(static_cast<size_t>(kRows * c.inputs), 12);
    const auto expected = product(Isa::kAvx2, pool, matrix, x);
    const auto out = product(Isa::kAvxVnni, pool, matrix, x);
    ASSERT_TRUE(same_bits(out.data(), expected.data(), kRows * c.outputs))
        << describe(c, Isa::kAvxVnni);
  }
}

// The tasks of a pass with both views: matrices of different forms and sizes on parts of the rows.
TEST(Matmul, TasksTogetherEqualTasksAlone) {
  constexpr int64_t kRows = 29;
  constexpr int64_t kInputs = 256;
  const auto x = random_activations(kRows * kInputs, 8);
  const std::vector<Case> shapes = {
      {TensorType::kQ4_1, 192, kInputs}, {TensorType::kBF16, 64, kInputs},
      {TensorType::kQ6_K, 576, kInputs}, {TensorType::kF32, 1, kInputs},
      {TensorType::kQ8_0, 33, kInputs},  {TensorType::kQ2_K, 80, kInputs}};
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 3, 4}) {
      ThreadPool pool(threads);
      const ComputeContext context{isa, pool};
      std::vector<PackedMatrix> matrices;
      for (const Case& c : shapes) {
        matrices.push_back(
            pack(TestMatrix(c.type, c.outputs, c.inputs).source(), WeightFormat::kAuto, pool));
      }
      Activations activations;
      activations.set(context, x.data(), kInputs, kRows, kInputs, {.groups = true, .bf16 = true});
      std::vector<std::vector<float>> outs;
      std::vector<MatmulTask> tasks;
      for (int repeat = 0; repeat < 3; ++repeat) {  // 18 tasks: more than one parallel section
        for (size_t m = 0; m < matrices.size(); ++m) {
          const int64_t begin = (repeat * 7 + static_cast<int64_t>(m)) % kRows;
          const int64_t count = std::min<int64_t>(kRows - begin, 1 + repeat * 9);
          outs.emplace_back(static_cast<size_t>(count * (shapes[m].outputs + 3)), -1.0f);
          tasks.push_back({&matrices[m], begin, count, outs.back().data(), shapes[m].outputs + 3});
        }
      }
      matmul(context, activations, tasks);
      for (size_t t = 0; t < tasks.size(); ++t) {
        const MatmulTask& task = tasks[t];
        const int64_t outputs = task.weight->rows();
        const auto first = x.begin() + task.row_begin * kInputs;
        const auto alone =
            rows_alone(isa, pool, *task.weight, {first, first + task.row_count * kInputs});
        for (int64_t i = 0; i < task.row_count; ++i) {
          const float* row = task.out + i * task.out_stride;
          ASSERT_TRUE(same_bits(row, alone.data() + i * outputs, outputs))
              << isa_name(isa) << " threads " << threads << " task " << t << " row " << i;
          for (int64_t pad = outputs; pad < task.out_stride; ++pad) ASSERT_EQ(row[pad], -1.0f);
        }
      }
    }
  }
}

TEST(Matmul, ReadersGetWhatWouldBeWritten) {
  constexpr int64_t kMost = 131;
  constexpr int64_t kInputs = 64;
  const auto x = random_activations(kMost * kInputs, 9);
  const std::vector<float> bias = random_activations(17000, 10);
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      const ComputeContext context{isa, pool};
      for (const TensorType type :
           {TensorType::kBF16, TensorType::kF32, TensorType::kQ4_0, TensorType::kQ8_0}) {
        // One, odd numbers of panels, more than a piece of one row.
        for (const int64_t outputs : {5, 17, 700, 17000}) {
          const PackedMatrix matrix =
              pack(TestMatrix(type, outputs, kInputs).source(), WeightFormat::kAuto, pool);
          for (const int64_t rows : {int64_t{1}, int64_t{9}, int64_t{64}, kMost}) {
            if (outputs > 1000 && rows > 1) continue;
            const std::vector<float> part(x.begin(), x.begin() + rows * kInputs);
            const auto expected = product(isa, pool, matrix, part, bias.data());
            Activations activations;
            activations.set(context, part.data(), kInputs, rows, kInputs, activation_forms(matrix));
            OutputCollector all(outputs);
            OutputCollector last(outputs);  // beside the others, of the last row
            std::vector<float> written(expected.size());
            const std::array<MatmulTask, 3> tasks{
                MatmulTask{&matrix, 0, rows, nullptr, 0, bias.data(), &all},
                MatmulTask{&matrix, 0, rows, written.data(), outputs, bias.data()},
                MatmulTask{&matrix, rows - 1, 1, nullptr, 0, bias.data(), &last}};
            matmul(context, activations, tasks);
            ASSERT_EQ(all.out.size(), expected.size());
            ASSERT_TRUE(same_bits(all.out.data(), expected.data(), rows * outputs))
                << describe({type, outputs, kInputs}, isa) << " rows " << rows;
            ASSERT_TRUE(same_bits(written.data(), expected.data(), rows * outputs));
            ASSERT_TRUE(
                same_bits(last.out.data(), expected.data() + (rows - 1) * outputs, outputs));
            EXPECT_TRUE(all.complete() && last.complete());
          }
        }
      }
    }
  }
}

TEST(Matmul, NonFiniteActivationsStayInTheirRow) {
  ThreadPool pool(2);
  constexpr int64_t kRows = 9;
  for (Isa isa : supported_isas()) {
    for (const Case& c : cases()) {
      TestMatrix source(c.type, c.outputs, c.inputs);
      const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
      const auto clean = random_activations(static_cast<size_t>(kRows * c.inputs), 9);
      const auto expected = product(isa, pool, matrix, clean);
      auto x = clean;
      const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity()};
      for (int64_t i = 0; i < 3; ++i) x[static_cast<size_t>(i * 3 * c.inputs + i * 11)] = bad[i];
      const auto out = product(isa, pool, matrix, x);
      for (int64_t i = 0; i < kRows; ++i) {
        if (i % 3 != 0) {
          ASSERT_TRUE(
              same_bits(out.data() + i * c.outputs, expected.data() + i * c.outputs, c.outputs))
              << describe(c, isa) << " row " << i;
          continue;
        }
        for (int64_t n = 0; n < c.outputs; ++n) {
          ASSERT_FALSE(std::isfinite(out[static_cast<size_t>(i * c.outputs + n)]))
              << describe(c, isa) << " row " << i << " output " << n;
        }
      }
    }
  }
}

TEST(Matmul, ZeroAndTinyActivationsGiveZero) {
  ThreadPool pool(1);
  for (Isa isa : supported_isas()) {
    for (TensorType type : block_types()) {
      TestMatrix source(type, 17, 256);
      const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
      std::vector<float> x(2 * 256, 0.0f);
      x[256] = 1e-38f;
      for (float value : product(isa, pool, matrix, x)) ASSERT_EQ(value, 0.0f) << traits(type).name;
    }
  }
}

// Four groups in ten hold an outlier of root mean square 20: the mean squared step is about
// 183 / 127^2, its error step / sqrt(12), and the inputs have root mean square 2.75: 0.0112.
TEST(Matmul, QuantisedActivationsAreClose) {
  ThreadPool pool(2);
  constexpr int64_t kInputs = 576;
  constexpr int64_t kOutputs = 192;
  TestMatrix source(TensorType::kF32, kOutputs, kInputs);
  const auto x = random_activations(8 * kInputs, 10);
  for (Isa isa : supported_isas()) {
    for (WeightFormat format : {WeightFormat::kQ8, WeightFormat::kQ4}) {
      const PackedMatrix matrix = pack(source.source(), format, pool);
      const auto out = product(isa, pool, matrix, x);
      std::vector<float> weights(kInputs);
      double error = 0;
      double norm = 0;
      for (int64_t n = 0; n < kOutputs; ++n) {
        unpack_row(matrix, n, weights.data());
        for (int64_t i = 0; i < 8; ++i) {
          double exact = 0;
          for (size_t k = 0; k < kInputs; ++k) {
            exact += double{weights[k]} * x[static_cast<size_t>(i * kInputs) + k];
          }
          error += std::pow(out[static_cast<size_t>(i * kOutputs + n)] - exact, 2);
          norm += exact * exact;
        }
      }
      EXPECT_LT(std::sqrt(error / norm), 0.0135) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace orthrus
