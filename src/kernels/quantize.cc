#include "kernels/quantize.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace orthrus {
namespace {

// Adding and taking away 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even, with
// nothing but additions, which every compiler turns into vectors.
constexpr float kRounder = 12582912.0f;

// The value of largest magnitude, with its sign; NaN or infinity where there is one.
float extreme(const float* values) {
  float best = 0;
  for (int i = 0; i < kQuantBlock; ++i) {
    if (!std::isfinite(values[i])) return values[i];
    if (std::fabs(values[i]) > std::fabs(best)) best = values[i];
  }
  return best;
}

// codes[i] = round(values[i] / scale) within [low, high], as floats.
void round_codes(const float* values, float inverse, float low, float high, float* codes) {
  for (int i = 0; i < kQuantBlock; ++i) {
    float code = values[i] * inverse;
    code = code < low ? low : code;
    code = code > high ? high : code;
    codes[i] = (code + kRounder) - kRounder;
  }
}

float round_to_f16(float value) { return f16_to_f32(f32_to_f16(value)); }

float squared_error(const float* values, const float* codes, float scale) {
  // Sixteen partial sums, so that the loop vectorises.
  float sums[16] = {};
  for (int half = 0; half < kQuantBlock; half += 16) {
    for (int i = 0; i < 16; ++i) {
      float error = values[half + i] - scale * codes[half + i];
      sums[i] += error * error;
    }
  }
  float total = 0;
  for (float sum : sums) total += sum;
  return total;
}

// The scale that fits these codes best: sum(x c) / sum(c c).
float least_squares_scale(const float* values, const float* codes, float otherwise) {
  float products[16] = {};
  float squares[16] = {};
  for (int half = 0; half < kQuantBlock; half += 16) {
    for (int i = 0; i < 16; ++i) {
      products[i] += values[half + i] * codes[half + i];
      squares[i] += codes[half + i] * codes[half + i];
    }
  }
  float product = 0;
  float square = 0;
  for (int i = 0; i < 16; ++i) {
    product += products[i];
    square += squares[i];
  }
  return square > 0 ? product / square : otherwise;
}

void store(const float* codes, float scale, int zero, DecodedBlock& out) {
  for (int i = 0; i < kQuantBlock; ++i) {
    out.codes[i] = static_cast<uint8_t>(static_cast<int>(codes[i]) + zero);
  }
  out.scale = f32_to_f16(scale);
  out.offset = 0;
}

// 1 / scale, or 0 where the scale is too small for f16: then every code is 0.
float inverse_of(float scale) { return scale != 0 ? 1.0f / scale : 0.0f; }

}  // namespace

bool quantize_q8(const float* values, DecodedBlock& out) {
  const float scale = round_to_f16(std::fabs(extreme(values)) / 127.0f);
  if (!std::isfinite(scale)) return false;
  float codes[kQuantBlock];
  round_codes(values, inverse_of(scale), -127, 127, codes);
  store(codes, scale, 128, out);
  return true;
}

bool quantize_q4(const float* values, DecodedBlock& out) {
  const float most = extreme(values);
  if (!std::isfinite(round_to_f16(most / 4))) return false;
  // The code -8 has no positive twin, so the extreme value belongs there: scale = extreme / -d. A
  // divisor below 8 clips it but makes the others finer; above 8 is coarser, sometimes luckier.
  constexpr float kDivisors[] = {8.0f, 7.5f, 7.0f, 8.5f, -7.0f};
  float best_error = INFINITY;
  float best_scale = 0;
  float best_codes[kQuantBlock] = {};
  for (float divisor : kDivisors) {
    float scale = round_to_f16(most / -divisor);
    float codes[kQuantBlock];
    round_codes(values, inverse_of(scale), -8, 7, codes);
    scale = round_to_f16(least_squares_scale(values, codes, scale));
    round_codes(values, inverse_of(scale), -8, 7, codes);
    float error = squared_error(values, codes, scale);
    if (error < best_error) {
      best_error = error;
      best_scale = scale;
      std::memcpy(best_codes, codes, sizeof(codes));
    }
  }
  store(best_codes, best_scale, 8, out);
  return true;
}

}  // namespace orthrus
