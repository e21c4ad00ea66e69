#include "decode/noise.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/counter_rng.h"

namespace orthrus {

double log_double(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log(m) = 2 * atanh(s), s = (m - 1) / (m + 1), |s|
  // <= 0.1716.
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDu;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t e = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  // The first term left out is z^12 / 25 < 2^-65 of the sum.
  double sum = 1.0 / 23;
  for (int n = 21; n >= 1; n -= 2) sum = sum * z + 1.0 / n;
  constexpr double kLn2High = 0x1.62e42fefa38p-1;  // e * kLn2High is exact
  constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  const double exponent = static_cast<double>(e);
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

std::array<uint32_t, 4> noise_bits(const NoiseKey& key, uint32_t group) {
  return philox4x32({group, key.position, key.choice, static_cast<uint32_t>(key.stream)},
                    {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

double gumbel(uint32_t bits) { return -log_double(-log_double(open_uniform(bits))); }

uint32_t least_bits(double noise) {
  constexpr double kInverseLn2 = 1.4426950408;
  // One less than the exact count absorbs the midpoint of u's cell and every rounding.
  const int ones = static_cast<int>(std::clamp(noise * kInverseLn2 - 1, 0.0, 31.0));
  return ones == 0 ? 0 : ~uint32_t{0} << (32 - ones);
}

#if defined(__x86_64__)
bool noise_block_avx2(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                      NoiseBlock& out);
bool noise_block_avx512(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                        NoiseBlock& out);
#elif defined(__aarch64__)
bool noise_block_neon(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                      NoiseBlock& out);
#endif

namespace {

bool noise_block_portable(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                          NoiseBlock& out) {
  bool reached = false;
  for (uint32_t g = 0; g < kNoiseGroups; ++g) {
    const auto bits = noise_bits(key, first_group + g);
    for (size_t w = 0; w < 4; ++w) {
      out.bits[w][g] = bits[w];
      reached |= bits[w] >= threshold;
    }
  }
  return reached;
}

}  // namespace

NoiseBlockFn noise_block(Isa isa) {
#if defined(__x86_64__)
  if (common_isa(isa) == Isa::kAvx512) return noise_block_avx512;
  if (common_isa(isa) == Isa::kAvx2) return noise_block_avx2;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return noise_block_neon;
#endif
  return noise_block_portable;
}

}  // namespace orthrus
