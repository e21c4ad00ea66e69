#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/matmul.h"
#include "kernels/matrix_fixtures.h"

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
  activations.set(context, x.data(), matrix.cols(), rows, matrix.cols(), needs_quantized(matrix));
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
      const bool quantized = needs_quantized(matrix);
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
              const double v = x[static_cast<size_t>(i * c.inputs + k)];
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

TEST(Matmul, RowsAreTheSameBitsForEveryRowCount) {
  ThreadPool pool(2);
  constexpr int64_t kMost = 65;
  for (Isa isa : supported_isas()) {
    for (const Case& c : cases()) {
      if (c.outputs == 1) continue;
      TestMatrix source(c.type, c.outputs, c.inputs);
      const PackedMatrix matrix = pack(source.source(), WeightFormat::kAuto, pool);
      const auto x = random_activations(static_cast<size_t>(kMost * c.inputs), 6);
      std::vector<float> alone;
      for (int64_t i = 0; i < kMost; ++i) {
        const std::vector<float> row(x.begin() + i * c.inputs, x.begin() + (i + 1) * c.inputs);
        const auto out = product(isa, pool, matrix, row);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      // Every count for the small ones; a few for the large shape, to save time.
      for (int64_t rows = 1; rows <= kMost; rows += c.outputs > 100 && rows > 8 ? 7 : 1) {
        const std::vector<float> some(x.begin(), x.begin() + rows * c.inputs);
        const auto out = product(isa, pool, matrix, some);
        ASSERT_TRUE(same_bits(out.data(), alone.data(), rows * c.outputs))
            << describe(c, isa) << " rows " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace orthrus
