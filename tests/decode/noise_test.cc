#include "decode/noise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "base/counter_rng.h"

namespace orthrus {
namespace {

TEST(LogDouble, KeepsItsStatedError) {
  double worst = 0;
  const auto check = [&](double x) {
    const long double exact = std::log(static_cast<long double>(x));
    if (exact == 0) {
      EXPECT_EQ(log_double(x), 0);
      return;
    }
    worst = std::max(worst, static_cast<double>(std::fabs((log_double(x) - exact) / exact)));
  };
  for (uint32_t i = 0; i < 200000; ++i) {
    const auto bits = philox4x32({i, 0, 0, 0}, {1, 2});
    check(open_uniform(bits[0]));             // what gumbel asks for first
    check(-std::log(open_uniform(bits[1])));  // and then
    check(std::ldexp(1 + open_uniform(bits[2]), static_cast<int>(bits[3] % 2000) - 1000));
    check(1 + std::ldexp(open_uniform(bits[2]) - 0.5, -static_cast<int>(bits[3] % 50)));
  }
  for (double x :
       {1.0, 2.0, 0.5, std::sqrt(0.5), std::sqrt(2.0), std::numeric_limits<double>::min(),
        std::numeric_limits<double>::max(), 1 - 0x1p-53, 1 + 0x1p-52}) {
    check(x);
  }
  EXPECT_LE(worst, 0x1p-50);
  EXPECT_GT(worst, 0);
}

TEST(Gumbel, IsBoundedAndReachedOnlyByTheLeastBits) {
  EXPECT_NEAR(gumbel(0), -3.12999, 1e-4);
  EXPECT_NEAR(gumbel(~0u), 22.87386, 1e-4);
  const auto check = [](uint32_t bits) {
    const double g = gumbel(bits);
    ASSERT_GE(g, kGumbelMin) << bits;
    ASSERT_LE(g, kGumbelMax) << bits;
    for (const double below : {0.0, 1e-12, 0.3}) ASSERT_GE(bits, least_bits(g - below)) << bits;
    ASSERT_NEAR(g, -std::log(-std::log(open_uniform(bits))), 1e-13 * std::max(1.0, std::fabs(g)));
  };
  for (uint32_t i = 0; i < 100000; ++i) check(philox4x32({i, 1, 0, 0}, {9, 9})[0]);
  for (int z = 0; z < 32; ++z) {  // both ends of every run of leading ones
    const uint32_t ones = z == 0 ? 0 : ~0u << (32 - z);
    check(ones);
    check(ones | ((0x80000000u >> z) - 1));
  }
}

TEST(Gumbel, HasTheMeanAndVarianceOfTheDistribution) {
  double sum = 0, squares = 0;
  const int n = 400000;
  for (uint32_t i = 0; i < n / 4; ++i) {
    for (const uint32_t bits : noise_bits({.seed = 5, .choice = 0, .position = 3}, i)) {
      const double g = gumbel(bits);
      sum += g;
      squares += g * g;
    }
  }
  const double mean = sum / n, variance = squares / n - mean * mean;
  EXPECT_NEAR(mean, 0.577216, 4 * 1.2825 / std::sqrt(n));
  EXPECT_NEAR(variance, 1.644934, 0.02);
}

TEST(NoiseBits, DependOnEveryPartOfTheKey) {
  const NoiseKey base{.seed = 1, .choice = 2, .position = 3, .stream = NoiseStream::kToken};
  std::set<uint32_t> seen;
  const auto add = [&](NoiseKey key, uint32_t token) { seen.insert(noise_bits_of(key, token)); };
  add(base, 4);
  add(base, 5);
  add(base, 8);
  for (NoiseStream stream :
       {NoiseStream::kDraft, NoiseStream::kAcceptance, NoiseStream::kResidual}) {
    NoiseKey key = base;
    key.stream = stream;
    add(key, 4);
  }
  NoiseKey key = base;
  key.seed = uint64_t{1} << 32 | 1;  // the upper half counts too
  add(key, 4);
  key = base;
  key.choice = 0;
  add(key, 4);
  key = base;
  key.position = 4;
  add(key, 4);
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_EQ(noise_bits_of(base, 4), noise_bits(base, 1)[0]);
  EXPECT_EQ(noise_bits_of(base, 7), noise_bits(base, 1)[3]);
}

TEST(Gumbel, LeastBitsRejectMostWithoutALogarithm) {
  EXPECT_EQ(least_bits(-1), 0u);
  EXPECT_GE(least_bits(10), 0xFFF00000u);
  EXPECT_LT(gumbel(least_bits(10)), 10);
}

TEST(NoiseBlock, HoldsTheSameBitsInEveryInstructionSet) {
  for (const Isa isa : kIsas) {
    if (!isa_supported(isa)) continue;
    for (uint32_t trial = 0; trial < 50; ++trial) {
      const auto random = philox4x32({trial, 0, 0, 0}, {4, 4});
      const NoiseKey key{.seed = uint64_t{random[0]} << 32 | random[1],
                         .choice = trial % 3,
                         .position = random[2],
                         .stream = static_cast<NoiseStream>(trial % 4)};
      const uint32_t first = trial == 0 ? 0 : random[3] % 40000;
      NoiseBlock block;
      uint32_t top = 0;
      noise_block(isa)(key, first, 0, block);
      for (uint32_t token = 0; token < 4 * kNoiseGroups; ++token) {
        const uint32_t bits = block.bits[token % 4][token / 4];
        ASSERT_EQ(bits, noise_bits_of(key, 4 * first + token)) << isa_name(isa) << " " << token;
        top = std::max(top, bits);
      }
      EXPECT_TRUE(noise_block(isa)(key, first, top, block));
      EXPECT_FALSE(noise_block(isa)(key, first, top + 1, block));
    }
  }
}

}  // namespace
}  // namespace orthrus
