#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace orthrus {

/// Keys a partial result covers: chunks start at multiples of it, in the cached part and in the own
/// part. Keys and values of a chunk (128 KiB a head in bf16 at head_dim 128) stay in the L2 cache
/// while several groups of rows use them.
inline constexpr int64_t kChunkBlocks = 4;
inline constexpr int64_t kChunkTokens = kChunkBlocks * kKvBlockTokens;

/// Queries that share the keys of one kernel call, at most (fewer on some instruction sets).
inline constexpr int kMaxGroupQueries = 12;

/// Result for one query over some keys: [0] the largest score, [1] the sum of exp(score - largest),
/// from kPartialHeader on the values [head_dim] weighted with these exponentials.
inline constexpr int64_t kPartialHeader = 16;
inline int64_t partial_floats(int64_t head_dim) { return kPartialHeader + head_dim; }

/// One chunk of one kv head for the queries of one group. tokens[q] in [1, kChunkTokens] is how
/// many tokens of the chunk query q attends to; `blocks` blocks hold them all. With `fetch` the
/// kernel fetches ahead of its reading, at its end from `next` (null: nothing is known to follow);
/// groups that find the chunk in the cache go without.
struct ChunkGroup {
  int blocks;
  const std::byte* keys[kChunkBlocks];
  const std::byte* values[kChunkBlocks];
  const std::byte* next;
  bool fetch;
  int64_t head_dim;
  float scale;
  int count;
  const float* queries[kMaxGroupQueries];
  float* query_copy;  ///< scratch of [kMaxGroupQueries * head_dim]
  int tokens[kMaxGroupQueries];
  float* partials[kMaxGroupQueries];
};

/// The kernels of one instruction set.
struct AttentionKernels {
  int max_queries;
  /// Fills the partial of every query.
  void (*chunk)(const ChunkGroup& group, KvType key_type, KvType value_type);
  /// An empty state: the partial over no keys.
  void (*clear)(float* state, int64_t head_dim);
  /// Adds a chunk's partial to the state of the chunks before it.
  void (*merge)(float* state, const float* partial, int64_t head_dim);
  /// out [head_dim] = the state's values over its sum.
  void (*finish)(const float* state, int64_t head_dim, float* out);
};

extern const AttentionKernels kAttentionPortable;
extern const AttentionKernels kAttentionAvx2;
extern const AttentionKernels kAttentionAvx512;
extern const AttentionKernels kAttentionAvx512Bf16;
extern const AttentionKernels kAttentionNeon;

}  // namespace orthrus
