#pragma once

namespace orthrus {

/// exp and log over 16 lanes, the only ones of the engine. V is one of the vector types in
/// vec_math_*.h. The coefficients are near-minimax fits of our own (weighted least squares).

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

/// Natural logarithm of positive finite normal x, relative error <= 2^-22.
/// x = 2^e (1 + f); log(1 + f) = f - f^2 / 2 + f^3 p(f).
template <typename V>
inline V vec_log(const V& x) {
  V mantissa, exponent;
  V::split(x, &mantissa, &exponent);
  const V f = mantissa - V::broadcast(1.0f);
  V p = V::broadcast(6.746599823e-2f);
  p = mul_add(p, f, V::broadcast(-1.167564020e-1f));
  p = mul_add(p, f, V::broadcast(1.188817471e-1f));
  p = mul_add(p, f, V::broadcast(-1.240559146e-1f));
  p = mul_add(p, f, V::broadcast(1.421955079e-1f));
  p = mul_add(p, f, V::broadcast(-1.666799635e-1f));
  p = mul_add(p, f, V::broadcast(2.000211924e-1f));
  p = mul_add(p, f, V::broadcast(-2.500000894e-1f));
  p = mul_add(p, f, V::broadcast(3.333331347e-1f));
  const V square = f * f;
  V y = mul_add(exponent, V::broadcast(-2.12194440e-4f), p * f * square);
  y = mul_add(square, V::broadcast(-0.5f), y);
  return mul_add(exponent, V::broadcast(0x1.63p-1f), f + y);
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

/// Largest lane; NaN is ignored.
template <typename V>
inline float lane_max(const V& v) {
  float lanes[16];
  v.store(lanes);
  float best = lanes[0];
  for (int i = 1; i < 16; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

}  // namespace orthrus
