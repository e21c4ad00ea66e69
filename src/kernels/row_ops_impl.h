#pragma once

#include <cmath>
#include <limits>

#include "kernels/row_ops.h"
#include "kernels/vec_math.h"

namespace orthrus {

/// RowOps over a vector type: whole vectors of 16, then one masked. Sums run in four vectors taken
/// in turn, so they depend on nothing but the values and their number.
template <typename V>
struct RowOpsImpl {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  /// Calls fn(index, lanes) for each vector of [0, n): 16 lanes, in the last one maybe fewer.
  template <typename Fn>
  static void for_vectors(int64_t n, Fn fn) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) fn(i, 16);
    if (i < n) fn(i, static_cast<int>(n - i));
  }
  static V load(const float* p, int lanes) {
    return lanes == 16 ? V::load(p) : V::load_first(p, lanes);
  }
  static void store(const V& v, float* p, int lanes) {
    lanes == 16 ? v.store(p) : v.store_first(p, lanes);
  }
  static float sum(const V (&parts)[4]) {
    return lane_sum((parts[0] + parts[1]) + (parts[2] + parts[3]));
  }

  static void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
    V squares[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    for_vectors(n, [&](int64_t i, int lanes) {
      const V v = load(x + i, lanes);
      V& part = squares[(i / 16) % 4];
      part = mul_add(v, v, part);
    });
    const V inverse = V::broadcast(1.0f / sqrtf(sum(squares) / static_cast<float>(n) + eps));
    for_vectors(n, [&](int64_t i, int lanes) {
      store(load(x + i, lanes) * inverse * load(weight + i, lanes), out + i, lanes);
    });
  }

  static void rotate(float* head, const float* cos, const float* sin, int64_t n) {
    float* other = head + n / 2;
    for_vectors(n / 2, [&](int64_t i, int lanes) {
      const V a = load(head + i, lanes), b = load(other + i, lanes);
      const V c = load(cos + i, lanes), s = load(sin + i, lanes);
      store(a * c - b * s, head + i, lanes);
      store(b * c + a * s, other + i, lanes);
    });
  }

  static void silu_mul(const float* gate, const float* up, int64_t n, float* out) {
    for_vectors(n, [&](int64_t i, int lanes) {
      const V g = load(gate + i, lanes);
      const V silu = g / (V::broadcast(1.0f) + vec_exp(V::zero() - g));
      store(silu * load(up + i, lanes), out + i, lanes);
    });
  }

  static void add(float* x, const float* y, int64_t n) {
    for_vectors(n, [&](int64_t i, int lanes) {
      store(load(x + i, lanes) + load(y + i, lanes), x + i, lanes);
    });
  }

  static int64_t argmax(const float* x, int64_t n) {
    const V infinity = V::broadcast(kInfinity);
    const V lowest = V::broadcast(-kInfinity);
    V best = lowest;
    uint32_t all_finite = 0xffff;
    for_vectors(n, [&](int64_t i, int lanes) {
      const V v = V::select_first(lanes, load(x + i, lanes), lowest);
      all_finite &= less_mask(v, infinity);
      best = max(v, best);
    });
    if (all_finite != 0xffff) return -1;
    const V largest = V::broadcast(lane_max(best));
    for (int64_t i = 0; i < n; i += 16) {
      const int lanes = static_cast<int>(n - i < 16 ? n - i : 16);
      const uint32_t valid = (1u << lanes) - 1u;
      const uint32_t hits = equal_mask(load(x + i, lanes), largest) & valid;
      if (hits != 0) return i + __builtin_ctz(hits);
    }
    return -1;
  }

  static float max_value(const float* x, int64_t n) {
    const V lowest = V::broadcast(-kInfinity);
    V best = lowest;
    for_vectors(n, [&](int64_t i, int lanes) {
      best = max(V::select_first(lanes, load(x + i, lanes), lowest), best);
    });
    return lane_max(best);
  }

  static float exp_sum(const float* x, float shift, float scale, int64_t n, float* out) {
    V sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    for_vectors(n, [&](int64_t i, int lanes) {
      const V shifted = load(x + i, lanes) - V::broadcast(shift);
      const V e = vec_exp(shifted * V::broadcast(scale));
      store(e, out + i, lanes);
      V& part = sums[(i / 16) % 4];
      part = part + V::select_first(lanes, e, V::zero());
    });
    return sum(sums);
  }

  static constexpr RowOps table() {
    return {rms_norm, rotate, silu_mul, add, argmax, max_value, exp_sum};
  }
};

extern const RowOps kRowOpsAvx2;
extern const RowOps kRowOpsAvx512;
extern const RowOps kRowOpsNeon;

}  // namespace orthrus
