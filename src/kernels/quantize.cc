#include "kernels/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace orthrus {
namespace {

// Four floats: every target has them, and every compiler keeps them in a register.
using Floats [[gnu::vector_size(16)]] = float;
constexpr int kVectors = kQuantBlock / 4;

struct Block {
  Floats v[kVectors];
};

// Adding and taking away 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even.
constexpr float kRounder = 12582912.0f;

float sum_of(const Floats& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

Block load(const float* values) {
  Block block;
  std::memcpy(&block, values, sizeof(block));
  return block;
}

// The value of largest magnitude, with its sign; NaN where a value is not finite.
float extreme(const Block& x) {
  Floats most = {};
  Floats least = {};
  Floats difference = {};  // v - v: 0, or NaN for infinity and NaN
  for (const Floats& v : x.v) {
    most = v > most ? v : most;
    least = v < least ? v : least;
    difference += v - v;
  }
  if (sum_of(difference) != 0) return std::numeric_limits<float>::quiet_NaN();
  float high = 0;
  float low = 0;
  for (int i = 0; i < 4; ++i) {
    high = most[i] > high ? most[i] : high;
    low = least[i] < low ? least[i] : low;
  }
  return high >= -low ? high : low;
}

// The integers nearest to x * inverse within [low, high].
Block round_codes(const Block& x, float inverse, float low, float high) {
  const Floats lowest = low - Floats{};
  const Floats highest = high - Floats{};
  Block codes;
  for (int i = 0; i < kVectors; ++i) {
    Floats code = x.v[i] * inverse;
    code = code < lowest ? lowest : code;
    code = code > highest ? highest : code;
    codes.v[i] = (code + kRounder) - kRounder;
  }
  return codes;
}

float round_to_f16(float value) { return f16_to_f32(f32_to_f16(value)); }

float squared_error(const Block& x, const Block& codes, float scale) {
  Floats sum = {};
  for (int i = 0; i < kVectors; ++i) {
    const Floats error = x.v[i] - scale * codes.v[i];
    sum += error * error;
  }
  return sum_of(sum);
}

// The scale that fits these codes best: sum(x c) / sum(c c).
float least_squares_scale(const Block& x, const Block& codes, float otherwise) {
  Floats products = {};
  Floats squares = {};
  for (int i = 0; i < kVectors; ++i) {
    products += x.v[i] * codes.v[i];
    squares += codes.v[i] * codes.v[i];
  }
  const float square = sum_of(squares);
  return square > 0 ? sum_of(products) / square : otherwise;
}

void store(const Block& codes, float scale, int zero, DecodedBlock& out) {
  float values[kQuantBlock];
  std::memcpy(values, &codes, sizeof(codes));
  for (int i = 0; i < kQuantBlock; ++i) {
    out.codes[i] = static_cast<uint8_t>(static_cast<int>(values[i]) + zero);
  }
  out.scale = f32_to_f16(scale);
  out.offset = 0;
}

// 1 / scale, or 0 where the scale is too small for f16: then every code is 0.
float inverse_of(float scale) { return scale != 0 ? 1.0f / scale : 0.0f; }

}  // namespace

bool quantize_q8(const float* values, DecodedBlock& out) {
  const Block x = load(values);
  const float scale = round_to_f16(std::fabs(extreme(x)) / 127.0f);
  if (!std::isfinite(scale)) return false;
  store(round_codes(x, inverse_of(scale), -127, 127), scale, 128, out);
  return true;
}

bool quantize_q4(const float* values, DecodedBlock& out) {
  const Block x = load(values);
  const float most = extreme(x);
  if (!std::isfinite(round_to_f16(most / 4))) return false;
  // The code -8 has no positive twin, so the extreme value belongs there: scale = extreme / -d. A
  // divisor below 8 clips it but makes the others finer; above 8 is coarser, sometimes luckier.
  constexpr float kDivisors[] = {8.0f, 7.5f, 7.0f, 8.5f, -7.0f};
  float best_error = std::numeric_limits<float>::infinity();
  float best_scale = 0;
  Block best_codes = {};
  for (float divisor : kDivisors) {
    float scale = round_to_f16(most / -divisor);
    Block codes = round_codes(x, inverse_of(scale), -8, 7);
    scale = round_to_f16(least_squares_scale(x, codes, scale));
    codes = round_codes(x, inverse_of(scale), -8, 7);
    const float error = squared_error(x, codes, scale);
    if (error < best_error) {
      best_error = error;
      best_scale = scale;
      best_codes = codes;
    }
  }
  store(best_codes, best_scale, 8, out);
  return true;
}

}  // namespace orthrus
