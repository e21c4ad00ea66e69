#include "base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace orthrus {
namespace {

/// The value of a binary format with `mantissa_bits` and a bias, from its definition.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1u);
  const uint32_t exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1u);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (mantissa_bits + exponent_bits)) & 1u ? -1 : 1;
  if (exponent == (1u << exponent_bits) - 1u) {
    return mantissa ? std::nan("") : sign * INFINITY;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  const double significand = static_cast<double>(mantissa | (1u << mantissa_bits));
  return sign * std::ldexp(significand, static_cast<int>(exponent) - bias - mantissa_bits);
}

/// x rounded to nearest even in such a format, in double precision (exact: it has bits to spare).
double round_to(double x, int exponent_bits, int mantissa_bits) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  const double quantum = std::ldexp(1.0, exponent - mantissa_bits);
  const double rounded = std::nearbyint(x / quantum) * quantum;
  return std::fabs(rounded) >= std::ldexp(1.0, bias + 1) ? std::copysign(INFINITY, x) : rounded;
}

void expect_equal(double actual, double expected, uint32_t bits) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(actual)) << std::hex << bits;
  } else {
    ASSERT_EQ(actual, expected) << std::hex << bits;
    ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << std::hex << bits;
  }
}

void check_from_float(uint32_t bits) {
  const double x = static_cast<double>(std::bit_cast<float>(bits));
  expect_equal(f16_to_f32(f32_to_f16(std::bit_cast<float>(bits))), round_to(x, 5, 10), bits);
  expect_equal(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(bits))), round_to(x, 8, 7), bits);
}

TEST(Dtype, EveryHalfAndEveryBFloatHasItsValue) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    expect_equal(f16_to_f32(static_cast<f16_t>(bits)), decode(bits, 5, 10), bits);
    expect_equal(bf16_to_f32(static_cast<bf16_t>(bits)), decode(bits, 8, 7), bits);
    if (HasFatalFailure()) return;
  }
}

TEST(Dtype, EveryHalfAndEveryBFloatComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float half = f16_to_f32(static_cast<f16_t>(bits));
    if (!std::isnan(half)) {
      ASSERT_EQ(f32_to_f16(half), bits);
    }
    const float bfloat = bf16_to_f32(static_cast<bf16_t>(bits));
    if (!std::isnan(bfloat)) {
      ASSERT_EQ(f32_to_bf16(bfloat), bits);
    }
  }
}

// Halfway between neighbours, and a float to either side of it.
TEST(Dtype, TiesOfHalvesGoToEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = decode(bits, 5, 10);
    const double high = bits == 0x7bff ? 65536.0 : decode(bits + 1, 5, 10);
    const uint32_t middle = std::bit_cast<uint32_t>(static_cast<float>((low + high) / 2));
    for (uint32_t sign : {0u, 0x80000000u}) {
      for (uint32_t near : {middle - 1, middle, middle + 1}) check_from_float(near | sign);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dtype, TiesOfBFloatsGoToEven) {
  for (uint32_t high = 0; high <= 0xffff; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      check_from_float(high << 16 | low);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Dtype, RandomFloatsRoundToNearest) {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    check_from_float(static_cast<uint32_t>(random()));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace orthrus
