#pragma once

#include <array>
#include <cstdint>

#include "kernels/isa.h"

namespace orthrus {

/// Which of the independent random streams of one request a number belongs to. Exact consensus
/// needs only kToken, shared by both views; rejection sampling draws its draft, its acceptance and
/// its residual from streams of their own.
enum class NoiseStream : uint32_t { kToken = 0, kDraft = 1, kAcceptance = 2, kResidual = 3 };

/// Everything random bits depend on, apart from the token id.
struct NoiseKey {
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  ///< absolute index of the token being chosen
  NoiseStream stream = NoiseStream::kToken;
};

/// Natural logarithm of a positive normal number, relative error <= 2^-50 (the quotient series of
/// atanh, no libm: the same bits on every machine).
double log_double(double x);

/// Random bits of the tokens 4 * group .. 4 * group + 3: one Philox block, keyed by the seed.
std::array<uint32_t, 4> noise_bits(const NoiseKey& key, uint32_t group);

/// Random bits of one token.
inline uint32_t noise_bits_of(const NoiseKey& key, uint32_t token) {
  return noise_bits(key, token / 4)[token % 4];
}

/// Standard Gumbel noise -log(-log(u)) of the uniform number that the bits stand for. Lies in
/// [kGumbelMin, kGumbelMax], because u keeps 2^-33 away from 0 and 1.
double gumbel(uint32_t bits);

inline constexpr double kGumbelMin = -3.2;
inline constexpr double kGumbelMax = 22.9;

/// The least bits whose noise may reach `noise`, without a logarithm: -log(u) >= 1 - u, so noise >=
/// y needs 1 - u <= exp(-y), and bits of at least floor(y / log 2) leading ones less one.
uint32_t least_bits(double noise);

inline constexpr int kNoiseGroups = 16;

/// Random bits of 64 tokens: those of token 4 * (first_group + g) + w are bits[w][g].
struct NoiseBlock {
  alignas(64) uint32_t bits[4][kNoiseGroups];
};

/// Fills the block that starts with a group; returns whether any of its bits is at least
/// `threshold`. The bits are the same in every instruction set.
using NoiseBlockFn = bool (*)(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                              NoiseBlock& out);
NoiseBlockFn noise_block(Isa isa);

}  // namespace orthrus
