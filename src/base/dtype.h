#pragma once

#include <bit>
#include <cstdint>

namespace orthrus {

/// bfloat16 and IEEE half as raw bits. Conversions to float are exact; conversions from float
/// round to nearest even and keep NaN a NaN.
using bf16_t = uint16_t;
using f16_t = uint16_t;

inline float bf16_to_f32(bf16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline bf16_t f32_to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16_t>((bits >> 16) | 0x40u);
  return static_cast<bf16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float f16_to_f32(f16_t bits) {
  uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu;
  uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal halves are multiples of 2^-24, exact in float.
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

inline f16_t f32_to_f16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<f16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<f16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low mantissa bits.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<f16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<f16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace orthrus
