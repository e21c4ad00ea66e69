#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "kernels/isa.h"
#include "orthrus/options.h"

namespace orthrus {

/// Tokens in a block of the KV cache; blocks start at multiples of it. A multiple of the 16 lanes.
inline constexpr int64_t kKvBlockTokens = 64;

/// How keys and values of kKvBlockTokens tokens lie in one block of memory: layers outermost; in a
/// layer the keys of every head, then the values of every head. Keys are in panels of 16 tokens
/// with the tokens in lanes (so that a row's scores are 16 independent chains over head_dim);
/// values are [tokens, head_dim]. In bf16 pairs lie together, as instructions multiply them: a
/// panel of keys is [head_dim / 2, 16, 2], values are [tokens / 2, head_dim, 2]. In q8 a head's
/// codes are followed by its f32 scales, one a token.
struct KvLayout {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  KvType key_type = KvType::kBF16;
  KvType value_type = KvType::kBF16;

  size_t key_bytes() const { return head_bytes(key_type); }
  size_t value_bytes() const { return head_bytes(value_type); }
  size_t layer_bytes() const {
    return (key_bytes() + value_bytes()) * static_cast<size_t>(kv_heads);
  }
  size_t block_bytes() const { return layer_bytes() * static_cast<size_t>(layers); }
  /// Of one element, without its share of a scale.
  static constexpr size_t type_bytes(KvType type) {
    return type == KvType::kQ8 ? 1 : type == KvType::kBF16 ? 2 : 4;
  }
  /// Where the scales of a q8 head begin.
  size_t scale_offset() const { return static_cast<size_t>(kKvBlockTokens * head_dim); }

 private:
  /// Keys or values of one head.
  size_t head_bytes(KvType type) const {
    const size_t codes = type_bytes(type) * static_cast<size_t>(kKvBlockTokens * head_dim);
    return type == KvType::kQ8 ? codes + sizeof(float) * kKvBlockTokens : codes;
  }
};

/// Error(kInput) where the kernels cannot serve the layout: all sizes positive, head_dim a multiple
/// of 16.
void check_kv_layout(const KvLayout& layout);

/// Writes the keys and values [kv_heads * head_dim each] of one token into slot [0, kKvBlockTokens)
/// of a block, rounded to the cache types (round to nearest even). In q8 the scale of a head is its
/// largest magnitude / 127 (0 where that is no normal number) and a code is x * (1 / scale)
/// rounded; a head with an element that is not finite becomes NaN as a whole, and nothing but that
/// head.
void write_kv(const KvLayout& layout, int64_t layer, std::byte* block, int64_t slot,
              const float* key, const float* value);

/// One row's attention: query heads over `length` cached tokens (the first `length` of the
/// sequence's blocks), then over `own_length` tokens of `own` (a diffusion block's scratch, one
/// layer, same layout with layers = 1), both in order.
struct AttentionRow {
  const float* query;  ///< [heads * head_dim], rotated
  float* out;          ///< [heads * head_dim]
  std::span<std::byte* const> blocks;
  int64_t length;
  std::span<std::byte* const> own_blocks;
  int64_t own_length;
};

/// Scratch of attention(): partial results of chunks. Grows, never shrinks.
class AttentionWorkspace {
 public:
  std::byte* reserve(size_t bytes) {
    if (buffer_.size() < bytes) buffer_ = AlignedBuffer(bytes + bytes / 4);
    return buffer_.data();
  }
  size_t bytes() const { return buffer_.size(); }
  /// Exactly that much where it has less: what is reserved for a known worst case never grows.
  void reserve_all(size_t bytes) {
    if (buffer_.size() < bytes) buffer_ = AlignedBuffer(bytes);
  }

 private:
  AlignedBuffer buffer_;
};

/// out = softmax(q k^T * scale) v for every row and head (GQA: head h reads kv head h * kv_heads /
/// heads). Keys are reduced in chunks fixed by absolute position, the chunks combined in index
/// order, the own block last: the result of a row depends on its query and keys alone, not on other
/// rows or on threads. Keys beyond a row's length are never used (they may hold anything). Work is
/// split over (row group, kv head) and, where that is uneven, over chunks, so that one row with a
/// long context uses all threads.
/// length + own_length > 0.
void attention(const ComputeContext& context, const KvLayout& layout, int64_t layer, int64_t heads,
               float scale, std::span<const AttentionRow> rows, AttentionWorkspace& workspace);

/// What a call takes of its workspace at most: `rows` rows that each attend to at most `tokens`
/// tokens of a sequence and `own_tokens` of a draft block.
size_t attention_workspace_bytes(int threads, const KvLayout& layout, int64_t heads, int64_t rows,
                                 int64_t tokens, int64_t own_tokens);

}  // namespace orthrus
