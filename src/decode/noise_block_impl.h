#pragma once

#include "decode/noise.h"

namespace orthrus {

/// Philox4x32-10 as in base/counter_rng.h, kNoiseGroups counters at once. V: a vector of kLanes
/// 32-bit numbers with mul_even (products of the even lanes, 64 bits each), odd_to_even, join (even
/// lanes of one, odd lanes of another), shifts of 64-bit lanes by 32, bitwise xor and unsigned
/// maximum.
template <typename V>
bool noise_block_impl(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                      NoiseBlock& out) {
  using Ints = typename V::Ints;
  const auto multiply = [](Ints a, uint32_t factor, Ints& high, Ints& low) {
    const Ints m = V::set(factor);
    const Ints even = V::mul_even(a, m);
    const Ints odd = V::mul_even(V::high_to_low(a), m);
    low = V::join(even, V::low_to_high(odd));
    high = V::join(V::high_to_low(even), odd);
  };
  Ints top = V::set(0);
  for (int part = 0; part < kNoiseGroups; part += V::kLanes) {
    Ints c0 = V::count_from(first_group + static_cast<uint32_t>(part));
    Ints c1 = V::set(key.position), c2 = V::set(key.choice);
    Ints c3 = V::set(static_cast<uint32_t>(key.stream));
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      Ints high0, low0, high1, low1;
      multiply(c0, 0xD2511F53u, high0, low0);
      multiply(c2, 0xCD9E8D57u, high1, low1);
      c0 = V::exclusive_or(V::exclusive_or(high1, c1), V::set(k0));
      c2 = V::exclusive_or(V::exclusive_or(high0, c3), V::set(k1));
      c1 = low1;
      c3 = low0;
    }
    const Ints words[4] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w) {
      V::store(out.bits[w] + part, words[w]);
      top = V::max(top, words[w]);
    }
  }
  return V::any_at_least(top, threshold);
}

}  // namespace orthrus
