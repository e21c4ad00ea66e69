#include "base/dtype.h"
#include "base/error.h"
#include "kernels/attention.h"

namespace orthrus {
namespace {

// One token's key of one head goes into lane `lane` of a panel [head_dim, 16] or, in bf16,
// [head_dim / 2, 16, 2].
void write_key(KvType type, std::byte* panel, int64_t lane, const float* key, int64_t head_dim) {
  if (type == KvType::kF32) {
    float* out = reinterpret_cast<float*>(panel) + lane;
    for (int64_t d = 0; d < head_dim; ++d) out[d * 16] = key[d];
    return;
  }
  bf16_t* out = reinterpret_cast<bf16_t*>(panel) + 2 * lane;
  for (int64_t d = 0; d < head_dim; d += 2, out += 32) {
    out[0] = f32_to_bf16(key[d]);
    out[1] = f32_to_bf16(key[d + 1]);
  }
}

void write_value(KvType type, std::byte* row, const float* value, int64_t head_dim) {
  if (type == KvType::kF32) {
    float* out = reinterpret_cast<float*>(row);
    for (int64_t d = 0; d < head_dim; ++d) out[d] = value[d];
    return;
  }
  bf16_t* out = reinterpret_cast<bf16_t*>(row);
  for (int64_t d = 0; d < head_dim; ++d) out[d] = f32_to_bf16(value[d]);
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
  const int64_t head_dim = layout.head_dim;
  const size_t panel_bytes = layout.key_bytes() / (kKvBlockTokens / 16);
  const size_t row_bytes = layout.value_bytes() / kKvBlockTokens;
  std::byte* keys = block + static_cast<size_t>(layer) * layout.layer_bytes();
  std::byte* values = keys + static_cast<size_t>(layout.kv_heads) * layout.key_bytes();
  std::byte* panel = keys + static_cast<size_t>(slot / 16) * panel_bytes;
  std::byte* row = values + static_cast<size_t>(slot) * row_bytes;
  for (int64_t head = 0; head < layout.kv_heads; ++head) {
    write_key(layout.key_type, panel, slot % 16, key + head * head_dim, head_dim);
    write_value(layout.value_type, row, value + head * head_dim, head_dim);
    panel += layout.key_bytes();
    row += layout.value_bytes();
  }
}

}  // namespace orthrus
