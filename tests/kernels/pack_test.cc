#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/golden_blocks.h"
#include "kernels/matrix_fixtures.h"
#include "kernels/packed_matrix.h"

namespace orthrus {
namespace {

std::vector<float> unpacked(const PackedMatrix& matrix) {
  std::vector<float> out(static_cast<size_t>(matrix.rows() * matrix.cols()));
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    unpack_row(matrix, i, out.data() + i * matrix.cols());
  }
  return out;
}

std::vector<float> dequantized(const MatrixSource& source) {
  std::vector<float> out(static_cast<size_t>(source.rows * source.cols));
  dequantize(source.type, source.data, out);
  return out;
}

TEST(Dequantize, GoldenBlocksExactly) {
  GoldenBlocks goldens;
  for (TensorType type : block_types()) {
    const auto raw = goldens.raw(type);
    const auto expected = goldens.values(type);
    std::vector<float> values(expected.size());
    dequantize(type, raw, values);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(values[i], expected[i]) << traits(type).name << " value " << i;
    }
  }
}

TEST(Pack, AutoKeepsEveryValueOfEveryType) {
  ThreadPool pool(2);
  for (TensorType type : matrix_types()) {
    const bool wide = traits(type).block_elements == 256;
    for (int64_t rows : {1, 16, 17, 40}) {
      for (int64_t cols :
           wide ? std::vector<int64_t>{256, 768} : std::vector<int64_t>{32, 96, 576}) {
        TestMatrix matrix(type, rows, cols);
        const PackedMatrix packed = pack(matrix.source(), WeightFormat::kAuto, pool);
        ASSERT_EQ(packed.form(), type);
        ASSERT_EQ(unpacked(packed), dequantized(matrix.source()))
            << traits(type).name << " " << rows << " x " << cols;
        ASSERT_EQ(packed.bytes(), packed_bytes(type, rows, cols, WeightFormat::kAuto));
      }
    }
  }
}

TEST(Pack, PlainTypesMayHaveOddColumns) {
  ThreadPool pool(1);
  for (TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    TestMatrix matrix(type, 5, 37);
    EXPECT_EQ(unpacked(pack(matrix.source(), WeightFormat::kAuto, pool)),
              dequantized(matrix.source()));
  }
}

TEST(Pack, StaysWithinEightPercentOfTheFile) {
  for (TensorType type : matrix_types()) {
    const int64_t rows = 512;
    const int64_t cols = 768;
    const double file = static_cast<double>(row_bytes(type, cols)) * rows;
    const double bytes = static_cast<double>(packed_bytes(type, rows, cols, WeightFormat::kAuto));
    EXPECT_GE(bytes, file) << traits(type).name;
    EXPECT_LE(bytes, 1.08 * file) << traits(type).name;
  }
}

TEST(Pack, FormatsChangeTheTypeOnlyDownwards) {
  ThreadPool pool(1);
  auto form = [&](TensorType type, WeightFormat format) {
    TestMatrix matrix(type, 16, 256);
    const PackedMatrix packed = pack(matrix.source(), format, pool);
    EXPECT_EQ(packed.bytes(), packed_bytes(type, 16, 256, format));
    return packed.form();
  };
  EXPECT_EQ(form(TensorType::kF32, WeightFormat::kQ8), TensorType::kQ8_0);
  EXPECT_EQ(form(TensorType::kBF16, WeightFormat::kQ4), TensorType::kQ4_0);
  EXPECT_EQ(form(TensorType::kQ6_K, WeightFormat::kQ8), TensorType::kQ6_K);
  EXPECT_EQ(form(TensorType::kQ4_K, WeightFormat::kQ8), TensorType::kQ4_K);
  EXPECT_EQ(form(TensorType::kQ4_1, WeightFormat::kQ4), TensorType::kQ4_1);
  EXPECT_EQ(form(TensorType::kQ2_K, WeightFormat::kQ4), TensorType::kQ2_K);
  EXPECT_EQ(form(TensorType::kQ8_0, WeightFormat::kQ4), TensorType::kQ4_0);
  EXPECT_EQ(form(TensorType::kQ5_K, WeightFormat::kF32), TensorType::kF32);
  EXPECT_EQ(form(TensorType::kQ5_K, WeightFormat::kBF16), TensorType::kBF16);
}

TEST(Pack, F32FromBlocksIsExactAndBf16IsRounded) {
  ThreadPool pool(2);
  for (TensorType type : block_types()) {
    TestMatrix matrix(type, 20, 256);
    const auto values = dequantized(matrix.source());
    EXPECT_EQ(unpacked(pack(matrix.source(), WeightFormat::kF32, pool)), values);
    std::vector<float> rounded(values);
    for (float& v : rounded) v = bf16_to_f32(f32_to_bf16(v));
    EXPECT_EQ(unpacked(pack(matrix.source(), WeightFormat::kBF16, pool)), rounded);
  }
}

// Root of the summed squared error over that of the values.
double relative_error(const std::vector<float>& values, const std::vector<float>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{values[i]} - double{expected[i]}, 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / norm);
}

TEST(Pack, Q8AndQ4AreCloseToNormalValues) {
  ThreadPool pool(2);
  TestMatrix matrix(TensorType::kF32, 64, 576);
  const auto values = dequantized(matrix.source());
  // A uniform quantiser with step max/127 has error step/sqrt(12); the largest of 32 normal values
  // is about 2.4 standard deviations: 2.4 / 127 / sqrt(12) = 0.0055.
  EXPECT_LT(relative_error(unpacked(pack(matrix.source(), WeightFormat::kQ8, pool)), values),
            0.006);
  // Step max/8 gives 0.087; the search for a scale stays below it.
  EXPECT_LT(relative_error(unpacked(pack(matrix.source(), WeightFormat::kQ4, pool)), values),
            0.084);
}

TEST(Pack, Q8AndQ4PadColumnsThatFillNoGroup) {
  ThreadPool pool(1);
  TestMatrix matrix(TensorType::kF32, 3, 45);
  const auto values = dequantized(matrix.source());
  EXPECT_LT(relative_error(unpacked(pack(matrix.source(), WeightFormat::kQ8, pool)), values),
            0.006);
  EXPECT_LT(relative_error(unpacked(pack(matrix.source(), WeightFormat::kQ4, pool)), values), 0.09);
}

TEST(Pack, ZeroAndTinyGroupsStayZero) {
  ThreadPool pool(1);
  std::vector<float> values(64, 0.0f);
  values[40] = 1e-30f;
  const MatrixSource source{
      .type = TensorType::kF32, .data = std::as_bytes(std::span(values)), .rows = 1, .cols = 64};
  for (WeightFormat format : {WeightFormat::kQ8, WeightFormat::kQ4}) {
    EXPECT_EQ(unpacked(pack(source, format, pool)), std::vector<float>(64, 0.0f));
  }
}

TEST(Pack, Int8WithRowScales) {
  ThreadPool pool(2);
  const int64_t rows = 18;
  const int64_t cols = 96;
  std::vector<int8_t> codes(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>(i * 37 % 256 - 128);
  std::vector<float> scales;
  for (int64_t i = 0; i < rows; ++i) scales.push_back(std::ldexp(1.0f + 0.125f * (i % 8), -10));
  MatrixSource source{.type = TensorType::kI8,
                      .data = std::as_bytes(std::span(codes)),
                      .rows = rows,
                      .cols = cols,
                      .row_scales = scales};
  std::vector<float> expected;
  for (size_t i = 0; i < codes.size(); ++i) {
    expected.push_back(static_cast<float>(codes[i]) * scales[i / static_cast<size_t>(cols)]);
  }
  const PackedMatrix q8 = pack(source, WeightFormat::kAuto, pool);
  EXPECT_EQ(q8.form(), TensorType::kQ8_0);
  EXPECT_EQ(unpacked(q8), expected);
  EXPECT_EQ(unpacked(pack(source, WeightFormat::kF32, pool)), expected);
  // 4 bits are made of the values, as of the same values in float32.
  const MatrixSource floats{.type = TensorType::kF32,
                            .data = std::as_bytes(std::span(expected)),
                            .rows = rows,
                            .cols = cols};
  const PackedMatrix q4 = pack(source, WeightFormat::kQ4, pool);
  EXPECT_EQ(q4.form(), TensorType::kQ4_0);
  EXPECT_EQ(unpacked(q4), unpacked(pack(floats, WeightFormat::kQ4, pool)));
  source.row_scales = {};
  EXPECT_THROW(pack(source, WeightFormat::kAuto, pool), Error);
}

TEST(Pack, InterleavedHeadsComeIntoHuggingFaceOrder) {
  ThreadPool pool(1);
  const int64_t heads = 3;
  const int64_t head_dim = 8;
  std::vector<float> file(static_cast<size_t>(heads * head_dim * 2));
  std::vector<float> expected(file.size());
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        const int64_t from = h * head_dim + 2 * i + j;
        const int64_t to = h * head_dim + j * head_dim / 2 + i;
        for (int64_t k = 0; k < 2; ++k) {
          const float value = static_cast<float>(from * 2 + k);
          file[static_cast<size_t>(from * 2 + k)] = value;
          expected[static_cast<size_t>(to * 2 + k)] = value;
        }
      }
    }
  }
  const MatrixSource source{.type = TensorType::kF32,
                            .data = std::as_bytes(std::span(file)),
                            .rows = heads * head_dim,
                            .cols = 2,
                            .interleaved_heads = static_cast<int>(heads)};
  EXPECT_EQ(unpacked(pack(source, WeightFormat::kAuto, pool)), expected);
}

TEST(Pack, RefusesWhatIsNotFinite) {
  ThreadPool pool(2);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::vector<float> values(17 * 64, 0.5f);
    values[16 * 64 + 63] = bad;
    const MatrixSource source{
        .type = TensorType::kF32, .data = std::as_bytes(std::span(values)), .rows = 17, .cols = 64};
    EXPECT_THROW(pack(source, WeightFormat::kQ8, pool), Error) << bad;
    EXPECT_THROW(pack(source, WeightFormat::kQ4, pool), Error) << bad;
    EXPECT_NO_THROW(pack(source, WeightFormat::kAuto, pool)) << bad;
  }
  TestMatrix matrix(TensorType::kQ8_0, 17, 64);
  const f16_t infinity = 0x7c00;
  std::memcpy(matrix.bytes.data() + matrix.bytes.size() - traits(matrix.type).block_bytes,
              &infinity, 2);
  EXPECT_THROW(pack(matrix.source(), WeightFormat::kAuto, pool), Error);
}

}  // namespace

TEST(WeightArena, ExpectedPiecesLieInOneBlockWithoutGaps) {
  const size_t sizes[] = {100, size_t{40} << 20, 64, 1};
  size_t expected = 0;
  for (const size_t size : sizes) expected += WeightArena::piece_bytes(size);
  EXPECT_EQ(expected, 128 + (size_t{40} << 20) + 64 + 64);
  WeightArena arena(expected);
  const WeightArena::Piece first = arena.allocate(sizes[0]);
  size_t at = WeightArena::piece_bytes(sizes[0]);
  for (const size_t size : std::span(sizes).subspan(1)) {
    const WeightArena::Piece piece = arena.allocate(size);
    EXPECT_EQ(piece.block, first.block);
    EXPECT_EQ(piece.data, first.data + at);
    at += WeightArena::piece_bytes(size);
  }
  EXPECT_NE(arena.allocate(1).block, first.block);  // beyond what was expected
}

TEST(WeightArena, WithoutExpectationSmallPiecesShareABlock) {
  WeightArena arena;
  const WeightArena::Piece small = arena.allocate(100);
  EXPECT_EQ(arena.allocate(100).block, small.block);
  EXPECT_NE(arena.allocate(size_t{40} << 20).block, small.block);
}

}  // namespace orthrus
