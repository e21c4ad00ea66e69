#include <arm_neon.h>

#include "decode/noise_block_impl.h"

namespace orthrus {
namespace {

struct Neon {
  using Ints = uint32x4_t;
  static constexpr int kLanes = 4;
  static Ints set(uint32_t x) { return vdupq_n_u32(x); }
  static Ints count_from(uint32_t x) {
    const Ints lanes = {0, 1, 2, 3};
    return vaddq_u32(set(x), lanes);
  }
  static uint32x2_t low_halves(Ints a) { return vmovn_u64(vreinterpretq_u64_u32(a)); }
  static Ints mul_even(Ints a, Ints b) {
    return vreinterpretq_u32_u64(vmull_u32(low_halves(a), low_halves(b)));
  }
  static Ints high_to_low(Ints a) {
    return vreinterpretq_u32_u64(vshrq_n_u64(vreinterpretq_u64_u32(a), 32));
  }
  static Ints low_to_high(Ints a) {
    return vreinterpretq_u32_u64(vshlq_n_u64(vreinterpretq_u64_u32(a), 32));
  }
  static Ints join(Ints even, Ints odd) {
    const Ints odd_lanes = {0, ~0u, 0, ~0u};
    return vbslq_u32(odd_lanes, odd, even);
  }
  static Ints exclusive_or(Ints a, Ints b) { return veorq_u32(a, b); }
  static Ints max(Ints a, Ints b) { return vmaxq_u32(a, b); }
  static void store(uint32_t* to, Ints a) { vst1q_u32(to, a); }
  static bool any_at_least(Ints a, uint32_t x) { return vmaxvq_u32(a) >= x; }
};

}  // namespace

bool noise_block_neon(const NoiseKey& key, uint32_t first_group, uint32_t threshold,
                      NoiseBlock& out) {
  return noise_block_impl<Neon>(key, first_group, threshold, out);
}

}  // namespace orthrus
