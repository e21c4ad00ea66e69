#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace orthrus {
namespace {

// Odd, with bits at random.
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
// So many independent chains keep the multiplier busy.
constexpr size_t kChains = 8;

uint64_t word_at(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Each step can be undone, so that a change of one word always shows.
uint64_t step(uint64_t state, uint64_t word) { return std::rotl((state ^ word) * kFactor, 29); }

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr size_t kStride = kChains * sizeof(uint64_t);
  std::array<uint64_t, kChains> chains{};
  for (size_t i = 0; i < kChains; ++i) chains[i] = i + 1;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kStride; left -= kStride, at += kStride) {
    for (size_t i = 0; i < kChains; ++i) {
      chains[i] = step(chains[i], word_at(at + i * sizeof(uint64_t)));
    }
  }
  uint64_t sum = bytes.size();
  for (const uint64_t chain : chains) sum = step(sum, chain);
  for (; left > 0; --left, ++at) sum = step(sum, std::to_integer<uint64_t>(*at));
  return sum ^ sum >> 32;
}

}  // namespace orthrus
