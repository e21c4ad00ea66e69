#pragma once

#include <array>
#include <cstdint>

namespace orthrus {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): 128
/// random bits as a pure function of a 128-bit counter and a 64-bit key. No state, so any thread
/// can ask for the noise of any (position, token) in any order.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A uniform number in the open interval (0, 1): the midpoint of one of 2^32 equal cells, exact in
/// double, so that neither 0 nor 1 can occur.
inline double open_uniform(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

}  // namespace orthrus
