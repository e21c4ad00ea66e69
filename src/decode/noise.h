#pragma once

#include <array>
#include <cstdint>

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

/// An upper bound of gumbel(bits) without a logarithm: with z leading ones, 1 - u > 2^-(z+1), and
/// -log(u) >= 1 - u, so the noise is below (z + 1) * log(2). (Rounded up; z = 32 for all ones.)
double gumbel_bound(uint32_t bits);

}  // namespace orthrus
