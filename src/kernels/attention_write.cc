#include <algorithm>
#include <bit>
#include <limits>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/attention.h"

namespace orthrus {
namespace {

constexpr float kLeastNormal = std::numeric_limits<float>::min();

// The scale of one head in q8. Magnitudes are compared as bits, among which NaN is the largest.
float scale_of(const float* x, int64_t n) {
  int32_t most = 0;
  for (int64_t i = 0; i < n; ++i) {
    most = std::max(most, std::bit_cast<int32_t>(x[i]) & 0x7fffffff);
  }
  const float scale = std::bit_cast<float>(most) / 127.0f;
  if (most >= 0x7f800000) return std::numeric_limits<float>::quiet_NaN();
  return scale >= kLeastNormal ? scale : 0.0f;
}

// Adding 1.5 * 2^23 rounds to an integer in the low bits.
int8_t code_of(float x, float inverse) {
  return static_cast<int8_t>(std::bit_cast<int32_t>(x * inverse + 0x1.8p23f) & 0xff);
}

// One token of one head into q8 codes `stride` bytes apart and its scale.
void write_q8(const float* x, int64_t n, std::byte* out, int64_t stride, float* scale) {
  *scale = scale_of(x, n);
  // Neither 0 nor NaN has an inverse: all codes are 0 then, and NaN * 0 is NaN.
  const float inverse = *scale > 0 ? 1.0f / *scale : 0.0f;
  if (inverse == 0) {
    for (int64_t d = 0; d < n; ++d) out[d * stride] = std::byte{0};
    return;
  }
  int8_t codes[16];
  for (int64_t d = 0; d < n; d += 16, out += 16 * stride) {
    for (int64_t i = 0; i < 16; ++i) codes[i] = code_of(x[d + i], inverse);
    for (int64_t i = 0; i < 16; ++i) out[i * stride] = static_cast<std::byte>(codes[i]);
  }
}

// In a loop of its own, which compilers turn into vectors.
void round_16(const float* x, bf16_t* out) {
  for (int i = 0; i < 16; ++i) out[i] = f32_to_bf16(x[i]);
}

// One token's key of one head goes into lane `lane` of a panel: [head_dim, 16] or, in bf16,
// [head_dim / 2, 16, 2].
void write_key(const KvLayout& layout, std::byte* head, int64_t slot, const float* key) {
  const int64_t head_dim = layout.head_dim;
  const int64_t lane = slot % 16;
  std::byte* panel = head + slot / 16 * 16 * head_dim *
                                static_cast<int64_t>(KvLayout::type_bytes(layout.key_type));
  switch (layout.key_type) {
    case KvType::kQ8:
      return write_q8(key, head_dim, panel + lane, 16,
                      reinterpret_cast<float*>(head + layout.scale_offset()) + slot);
    case KvType::kF32: {
      float* out = reinterpret_cast<float*>(panel) + lane;
      for (int64_t d = 0; d < head_dim; ++d) out[d * 16] = key[d];
      return;
    }
    case KvType::kBF16: {
      bf16_t rounded[16];
      bf16_t* out = reinterpret_cast<bf16_t*>(panel) + 2 * lane;
      for (int64_t d = 0; d < head_dim; d += 16) {
        round_16(key + d, rounded);
        for (int i = 0; i < 16; i += 2, out += 32) {
          out[0] = rounded[i];
          out[1] = rounded[i + 1];
        }
      }
      return;
    }
  }
}

// A row of its own or, in bf16, [tokens / 2, head_dim, 2].
void write_value(const KvLayout& layout, std::byte* head, int64_t slot, const float* value) {
  const int64_t head_dim = layout.head_dim;
  std::byte* row =
      head + slot * head_dim * static_cast<int64_t>(KvLayout::type_bytes(layout.value_type));
  switch (layout.value_type) {
    case KvType::kQ8:
      return write_q8(value, head_dim, row, 1,
                      reinterpret_cast<float*>(head + layout.scale_offset()) + slot);
    case KvType::kF32:
      std::copy_n(value, head_dim, reinterpret_cast<float*>(row));
      return;
    case KvType::kBF16: {
      bf16_t rounded[16];
      bf16_t* out = reinterpret_cast<bf16_t*>(head) + slot / 2 * 2 * head_dim + slot % 2;
      for (int64_t d = 0; d < head_dim; d += 16, out += 32) {
        round_16(value + d, rounded);
        for (int i = 0; i < 16; ++i) out[2 * i] = rounded[i];
      }
      return;
    }
  }
}

}  // namespace

void check_kv_layout(const KvLayout& layout) {
  if (layout.layers <= 0 || layout.kv_heads <= 0) {
    fail("KV cache: {} layers of {} key/value heads; both must be positive", layout.layers,
         layout.kv_heads);
  }
  if (layout.head_dim <= 0 || layout.head_dim % 16 != 0) {
    fail("KV cache: head_dim is {}; a positive multiple of 16 is supported", layout.head_dim);
  }
}

void write_kv(const KvLayout& layout, int64_t layer, std::byte* block, int64_t slot,
              const float* key, const float* value) {
  std::byte* keys = block + static_cast<size_t>(layer) * layout.layer_bytes();
  std::byte* values = keys + static_cast<size_t>(layout.kv_heads) * layout.key_bytes();
  for (int64_t head = 0; head < layout.kv_heads; ++head) {
    write_key(layout, keys, slot, key + head * layout.head_dim);
    write_value(layout, values, slot, value + head * layout.head_dim);
    keys += layout.key_bytes();
    values += layout.value_bytes();
  }
}

}  // namespace orthrus
