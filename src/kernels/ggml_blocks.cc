#include "kernels/ggml_blocks.h"

#include <cstring>

#include "base/error.h"
#include "kernels/packed_form.h"
#include "kernels/packed_matrix.h"

namespace orthrus {
namespace {

f16_t read_f16(const uint8_t* p) { return static_cast<f16_t>(p[0] | (p[1] << 8)); }

// A minimum that ggml adds is an offset that we subtract: only the sign differs.
f16_t negated(f16_t value) { return value ^ 0x8000u; }

// out[i] = fn(bytes[i]) for kCount bytes, eight of them in a word at a time: loading a model runs
// at this speed.
template <int kCount, typename Fn>
void map_bytes(const uint8_t* bytes, Fn fn, uint8_t* out) {
  for (int i = 0; i < kCount; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    word = fn(word);
    std::memcpy(out + i, &word, 8);
  }
}

constexpr uint64_t kLowHalves = 0x0f0f0f0f0f0f0f0f;
constexpr uint64_t kTopBits = 0x8080808080808080;

// 32 codes from 16 bytes: low halves first, then high halves.
void split_nibbles(const uint8_t* bytes, uint8_t* codes) {
  map_bytes<16>(
      bytes, [](uint64_t word) { return word & kLowHalves; }, codes);
  map_bytes<16>(
      bytes, [](uint64_t word) { return word >> 4 & kLowHalves; }, codes + 16);
}

// Adds the fifth bits of 32 codes: bit i of a little-endian word belongs to code i.
void add_fifth_bits(const uint8_t* bytes, uint8_t* codes) {
  for (int i = 0; i < 32; ++i)
    codes[i] |= static_cast<uint8_t>(((bytes[i / 8] >> (i % 8)) & 1) << 4);
}

void decode_legacy(TensorType type, const uint8_t* p, DecodedBlock& out) {
  const bool has_minimum = type == TensorType::kQ4_1 || type == TensorType::kQ5_1;
  const bool five_bits = type == TensorType::kQ5_0 || type == TensorType::kQ5_1;
  out.scale = read_f16(p);
  p += 2;
  out.offset = 0;
  if (has_minimum) {
    out.offset = negated(read_f16(p));
    p += 2;
  }
  const uint8_t* fifth = p;
  if (five_bits) p += 4;
  split_nibbles(p, out.codes);
  if (five_bits) add_fifth_bits(fifth, out.codes);
}

void decode_q8_0(const uint8_t* p, DecodedBlock& out) {
  out.scale = read_f16(p);
  out.offset = 0;
  map_bytes<32>(
      p + 2, [](uint64_t word) { return word ^ kTopBits; }, out.codes);  // int8 + 128
}

// 256 two-bit codes from 64 bytes: each 32 bytes hold four runs of 32 codes.
void split_pairs(const uint8_t* bytes, uint8_t* codes) {
  for (int half = 0; half < 2; ++half) {
    for (int run = 0; run < 4; ++run) {
      for (int i = 0; i < 32; ++i) {
        codes[half * 128 + run * 32 + i] = (bytes[half * 32 + i] >> (2 * run)) & 3;
      }
    }
  }
}

void decode_q2_k(const uint8_t* p, DecodedBlock& out) {
  for (int g = 0; g < 16; ++g) {
    out.sub_scale[g] = static_cast<int8_t>(p[g] & 15);
    out.sub_offset[g] = static_cast<int8_t>(p[g] >> 4);
  }
  split_pairs(p + 16, out.codes);
  out.scale = read_f16(p + 80);
  out.offset = read_f16(p + 82);
}

void decode_q3_k(const uint8_t* p, DecodedBlock& out) {
  split_pairs(p + 32, out.codes);
  for (int run = 0; run < 8; ++run) {
    for (int i = 0; i < 32; ++i) {
      out.codes[run * 32 + i] |= static_cast<uint8_t>(((p[i] >> run) & 1) << 2);
    }
  }
  const uint8_t* scales = p + 96;  // low four bits of 16 scales in 8 bytes, high two bits in 4
  for (int g = 0; g < 16; ++g) {
    int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    int high = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
    out.sub_scale[g] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
  out.scale = read_f16(p + 108);
  out.offset = 0;
}

// Q4_K and Q5_K hold 8 six-bit scales and 8 six-bit minima in 12 bytes.
void split_six_bit_scales(const uint8_t* p, DecodedBlock& out) {
  for (int g = 0; g < 4; ++g) {
    out.sub_scale[g] = static_cast<int8_t>(p[g] & 63);
    out.sub_offset[g] = static_cast<int8_t>(p[g + 4] & 63);
    out.sub_scale[g + 4] = static_cast<int8_t>((p[g + 8] & 15) | ((p[g] >> 6) << 4));
    out.sub_offset[g + 4] = static_cast<int8_t>((p[g + 8] >> 4) | ((p[g + 4] >> 6) << 4));
  }
}

void decode_q4_k_q5_k(bool five_bits, const uint8_t* p, DecodedBlock& out) {
  out.scale = read_f16(p);
  out.offset = read_f16(p + 2);
  split_six_bit_scales(p + 4, out);
  const uint8_t* fifth = p + 16;
  const uint8_t* low = fifth + (five_bits ? 32 : 0);
  for (int run = 0; run < 8; ++run) {
    const uint8_t* bytes = low + run / 2 * 32;
    for (int i = 0; i < 32; ++i) out.codes[run * 32 + i] = (bytes[i] >> (run % 2 * 4)) & 15;
    if (!five_bits) continue;
    for (int i = 0; i < 32; ++i) {
      out.codes[run * 32 + i] |= static_cast<uint8_t>(((fifth[i] >> run) & 1) << 4);
    }
  }
}

void decode_q6_k(const uint8_t* p, DecodedBlock& out) {
  for (int half = 0; half < 2; ++half) {
    for (int run = 0; run < 4; ++run) {
      const uint8_t* low = p + half * 64 + run % 2 * 32;
      const uint8_t* high = p + 128 + half * 32;
      uint8_t* codes = out.codes + half * 128 + run * 32;
      for (int i = 0; i < 32; ++i) {
        codes[i] = static_cast<uint8_t>(((low[i] >> (run / 2 * 4)) & 15) |
                                        (((high[i] >> (2 * run)) & 3) << 4));
      }
    }
  }
  std::memcpy(out.sub_scale, p + 192, 16);
  out.scale = read_f16(p + 208);
  out.offset = 0;
}

template <typename T, typename Convert>
void widen(std::span<const std::byte> data, std::span<float> values, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    T raw;
    std::memcpy(&raw, data.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(raw);
  }
}

}  // namespace

void decode_block(TensorType type, const std::byte* block, DecodedBlock& out) {
  const auto* p = reinterpret_cast<const uint8_t*>(block);
  switch (type) {
    case TensorType::kQ8_0:
      return decode_q8_0(p, out);
    case TensorType::kQ2_K:
      return decode_q2_k(p, out);
    case TensorType::kQ3_K:
      return decode_q3_k(p, out);
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return decode_q4_k_q5_k(type == TensorType::kQ5_K, p, out);
    case TensorType::kQ6_K:
      return decode_q6_k(p, out);
    default:
      return decode_legacy(type, p, out);
  }
}

void encode_block(TensorType type, const DecodedBlock& block, std::byte* out) {
  ORTHRUS_CHECK(type == TensorType::kQ8_0 || type == TensorType::kQ4_0);
  auto* const p = reinterpret_cast<uint8_t*>(out);
  p[0] = static_cast<uint8_t>(block.scale & 0xff);
  p[1] = static_cast<uint8_t>(block.scale >> 8);
  if (type == TensorType::kQ8_0) {
    map_bytes<32>(
        block.codes, [](uint64_t word) { return word ^ kTopBits; }, p + 2);
  } else {
    for (int i = 0; i < 16; ++i) {
      p[2 + i] = static_cast<uint8_t>(block.codes[i] | (block.codes[16 + i] << 4));
    }
  }
}

void block_values(TensorType type, const DecodedBlock& block, float* out) {
  const GroupForm form = group_form(type);
  const int64_t elements = traits(type).block_elements;
  const float scale = f16_to_f32(block.scale);
  const float offset = f16_to_f32(block.offset);
  for (int64_t g = 0; g < elements / form.group; ++g) {
    const float s = form.two_level ? scale * static_cast<float>(block.sub_scale[g]) : scale;
    const float o = form.two_level ? offset * static_cast<float>(block.sub_offset[g]) : offset;
    for (int64_t i = g * form.group; i < (g + 1) * form.group; ++i) {
      int code = form.lookup ? kIq4Codes[block.codes[i]] : block.codes[i];
      float product = s * static_cast<float>(code - form.zero);
      out[i] = form.has_offset ? product - o : product;
    }
  }
}

void dequantize(TensorType type, std::span<const std::byte> data, std::span<float> values) {
  const TensorTypeTraits& t = traits(type);
  const int64_t count = static_cast<int64_t>(values.size());
  ORTHRUS_CHECK(count % t.block_elements == 0 && data.size() == row_bytes(type, count));
  switch (type) {
    case TensorType::kF32:
      return widen<float>(data, values, [](float v) { return v; });
    case TensorType::kF16:
      return widen<f16_t>(data, values, f16_to_f32);
    case TensorType::kBF16:
      return widen<bf16_t>(data, values, bf16_to_f32);
    case TensorType::kI8:
      return widen<int8_t>(data, values, [](int8_t v) { return static_cast<float>(v); });
    default:
      break;
  }
  DecodedBlock block;
  for (int64_t i = 0; i < count / t.block_elements; ++i) {
    decode_block(type, data.data() + static_cast<size_t>(i) * t.block_bytes, block);
    block_values(type, block, values.data() + i * t.block_elements);
  }
}

}  // namespace orthrus
