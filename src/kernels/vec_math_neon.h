#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace orthrus {
namespace {

/// 16 floats in four registers; see VecPortable for what the members mean.
struct VecNeon {
  // 32 registers hold eight vectors, of which a pair of dimensions takes two or more for keys.
  static constexpr int kAccumulators = 5;
  static constexpr int kMaxQueries = 6;

  float32x4_t part[4];

  template <typename Fn>
  static VecNeon make(Fn fn) {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
  static VecNeon zero() { return broadcast(0.0f); }
  static VecNeon broadcast(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return {{v, v, v, v}};
  }
  static VecNeon load(const float* p) {
    return make([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  // No loop: sums that one walks through live in memory, not in registers.
  void store(float* p) const {
    vst1q_f32(p, part[0]);
    vst1q_f32(p + 4, part[1]);
    vst1q_f32(p + 8, part[2]);
    vst1q_f32(p + 12, part[3]);
  }
  static VecNeon load_first(const float* p, int n) {
    float lanes[16] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  void store_first(float* p, int n) const {
    float lanes[16];
    store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
  static VecNeon load_i8(const void* p) {
    const int8x16_t codes = vld1q_s8(static_cast<const int8_t*>(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
  }
  static void load_bf16_pairs(const void* p, VecNeon* first, VecNeon* second) {
    const auto* pairs = static_cast<const uint32_t*>(p);
    const uint32x4_t high = vdupq_n_u32(0xffff0000u);
    *first = make(
        [&](int i) { return vreinterpretq_f32_u32(vshlq_n_u32(vld1q_u32(pairs + 4 * i), 16)); });
    *second = make(
        [&](int i) { return vreinterpretq_f32_u32(vandq_u32(vld1q_u32(pairs + 4 * i), high)); });
  }

  friend VecNeon operator+(const VecNeon& x, const VecNeon& y) {
    return make([&](int i) { return vaddq_f32(x.part[i], y.part[i]); });
  }
  friend VecNeon operator-(const VecNeon& x, const VecNeon& y) {
    return make([&](int i) { return vsubq_f32(x.part[i], y.part[i]); });
  }
  friend VecNeon operator*(const VecNeon& x, const VecNeon& y) {
    return make([&](int i) { return vmulq_f32(x.part[i], y.part[i]); });
  }
  friend VecNeon operator/(const VecNeon& x, const VecNeon& y) {
    return make([&](int i) { return vdivq_f32(x.part[i], y.part[i]); });
  }
  friend VecNeon mul_add(const VecNeon& x, const VecNeon& y, const VecNeon& z) {
    return make([&](int i) { return vfmaq_f32(z.part[i], x.part[i], y.part[i]); });
  }
  // FMAX and FMIN would hand on a NaN of either operand.
  friend VecNeon max(const VecNeon& x, const VecNeon& y) {
    return make(
        [&](int i) { return vbslq_f32(vcgtq_f32(x.part[i], y.part[i]), x.part[i], y.part[i]); });
  }
  friend VecNeon min(const VecNeon& x, const VecNeon& y) {
    return make(
        [&](int i) { return vbslq_f32(vcltq_f32(x.part[i], y.part[i]), x.part[i], y.part[i]); });
  }
  static VecNeon select_first(int n, const VecNeon& x, const VecNeon& y) {
    const int32x4_t lanes = {0, 1, 2, 3};
    return make([&](int i) {
      return vbslq_f32(vcltq_s32(lanes, vdupq_n_s32(n - 4 * i)), x.part[i], y.part[i]);
    });
  }
  friend uint32_t less_mask(const VecNeon& x, const VecNeon& y) {
    return mask([&](int i) { return vcltq_f32(x.part[i], y.part[i]); });
  }
  friend uint32_t equal_mask(const VecNeon& x, const VecNeon& y) {
    return mask([&](int i) { return vceqq_f32(x.part[i], y.part[i]); });
  }
  static VecNeon power_of_two(const VecNeon& biased) {
    const int32x4_t bias = vdupq_n_s32(127);
    return make([&](int i) {
      const int32x4_t exponent = vaddq_s32(vreinterpretq_s32_f32(biased.part[i]), bias);
      return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
    });
  }

 private:
  template <typename Fn>
  static uint32_t mask(Fn fn) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(fn(0), bits)) | vaddvq_u32(vandq_u32(fn(1), bits)) << 4 |
           vaddvq_u32(vandq_u32(fn(2), bits)) << 8 | vaddvq_u32(vandq_u32(fn(3), bits)) << 12;
  }
};

}  // namespace
}  // namespace orthrus
