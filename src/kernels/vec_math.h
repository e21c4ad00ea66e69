#pragma once

namespace orthrus {

/// exp over 16 lanes, the only one of the engine but for the weights of attention that are rounded
/// to bf16 (attention_avx512bf16.cc). V is one of the vector types in vec_math_*.h. The
/// coefficients are near-minimax fits of our own (weighted least squares).

/// e^x with relative error <= 2^-22 on [-87, 88]; 0 below -87.7, inf above 88.4; NaN stays NaN.
/// x = n ln2 + r with |r| <= ln2 / 2; e^x = 2^n (1 + r + r^2 q(r)).
template <typename V>
inline V vec_exp(const V& x) {
  // The bounds come first: max and min hand on their second operand where it is NaN.
  const V bounded = min(V::broadcast(89.0f), max(V::broadcast(-88.0f), x));
  const V magic = V::broadcast(0x1.8p23f);  // adding it rounds to an integer in the low bits
  const V biased = mul_add(bounded, V::broadcast(1.44269504f), magic);
  const V n = biased - magic;
  // ln2 in two parts; n times the first is exact.
  V r = mul_add(n, V::broadcast(-0x1.63p-1f), bounded);
  r = mul_add(n, V::broadcast(2.12194440e-4f), r);
  V q = V::broadcast(1.381387818e-3f);
  q = mul_add(q, r, V::broadcast(8.369063959e-3f));
  q = mul_add(q, r, V::broadcast(4.166842252e-2f));
  q = mul_add(q, r, V::broadcast(1.666651815e-1f));
  q = mul_add(q, r, V::broadcast(4.999999404e-1f));
  const V tail = mul_add(q, r * r, r);
  return (tail + V::broadcast(1.0f)) * V::power_of_two(biased);
}

/// Sum of the lanes: halves are added until one is left.
template <typename V>
inline float lane_sum(const V& v) {
  float lanes[16];
  v.store(lanes);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

/// Largest lane, where none is NaN (max() never yields the NaN of its first operand).
template <typename V>
inline float lane_max(const V& v) {
  float lanes[16];
  v.store(lanes);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] = lanes[i + width] > lanes[i] ? lanes[i + width] : lanes[i];
    }
  }
  return lanes[0];
}

}  // namespace orthrus
