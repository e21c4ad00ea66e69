#pragma once

#include <limits>
#include <type_traits>

#include "kernels/attention_kernel.h"
#include "kernels/vec_math.h"

namespace orthrus {

/// The attention kernels over a vector type. A score is one chain over head_dim, an output one
/// chain over the tokens, whatever shares the register tile: so a query's partial does not depend
/// on its group. PairDot, where the instruction set has one, multiplies pairs of bf16: with keys
/// and values in bf16, queries and weights are rounded to it, and lie as such, 16 in the place of 8
/// floats, where they would otherwise be floats.
template <typename V, typename PairDot = void>
struct AttentionImpl {
  static_assert(V::kMaxQueries <= kMaxGroupQueries);
  static constexpr int kPanels = static_cast<int>(kKvBlockTokens / 16);  // key panels in a block

  /// Vectors beside each query in a register tile: the largest power of two that fits.
  static constexpr int tile_width(int queries, int most) {
    int width = 1;
    while (2 * width <= most && 2 * width * queries <= V::kAccumulators) width *= 2;
    return width;
  }

  /// Two rows of a key panel: dimensions d and d + 1 of its 16 tokens.
  template <KvType kType>
  static void load_keys(const std::byte* p, V* even, V* odd) {
    if constexpr (kType == KvType::kQ8) {
      *even = V::load_i8(p);
      *odd = V::load_i8(p + 16);
    } else if constexpr (kType == KvType::kBF16) {
      V::load_bf16_pairs(p, even, odd);
    } else {
      const float* lanes = reinterpret_cast<const float*>(p);
      *even = V::load(lanes);
      *odd = V::load(lanes + 16);
    }
  }
  template <KvType kType>
  static V load_values(const std::byte* p) {
    if constexpr (kType == KvType::kQ8) {
      return V::load_i8(p);
    } else {
      return V::load(reinterpret_cast<const float*>(p));
    }
  }
  /// One of the two tokens of a row of bf16 values.
  static V load_token(const std::byte* pairs, int odd) {
    V tokens[2];
    V::load_bf16_pairs(pairs, &tokens[0], &tokens[1]);
    return tokens[odd];
  }

  template <KvType kType>
  static constexpr bool kDots = !std::is_void_v<PairDot> && kType == KvType::kBF16;

  // A block is 16 KiB or so a head, too short for the hardware's prefetching to get going: while
  // one is read, the next one read is fetched. These give its distance from the block at hand.
  static ptrdiff_t ahead_of_keys(const ChunkGroup& group, int block) {
    if (!group.fetch) return 0;
    return (block + 1 < group.blocks ? group.keys[block + 1] : group.values[0]) - group.keys[block];
  }
  static ptrdiff_t ahead_of_values(const ChunkGroup& group, int block) {
    const std::byte* next = block + 1 < group.blocks ? group.values[block + 1] : group.next;
    return group.fetch && next != nullptr ? next - group.values[block] : 0;
  }
  // Into the L2 cache: measured a third faster than into L1, which the block at hand fills.
  static void fetch(const std::byte* p, ptrdiff_t ahead, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + ahead + i, 0, 2);
  }

  /// The scales of a q8 head whose codes begin there.
  static const float* scales_of(const std::byte* codes, int64_t head_dim) {
    return reinterpret_cast<const float*>(codes + kKvBlockTokens * head_dim);
  }

  using Scores = float[kMaxGroupQueries][kChunkTokens];

  /// Scores of kQueries queries for kWidth key panels from `panel` on (panels of the chunk).
  template <KvType kType, int kQueries, int kWidth>
  static void score_tile(const ChunkGroup& group, int panel, Scores& scores) {
    constexpr int64_t kRow = 16 * static_cast<int64_t>(KvLayout::type_bytes(kType));
    constexpr int kStep = kType == KvType::kQ8 ? 4 : 2;  // dimensions that fill a cache line or two
    const int64_t panel_bytes = kRow * group.head_dim;
    const std::byte* keys = group.keys[panel / kPanels] + panel % kPanels * panel_bytes;
    const ptrdiff_t ahead = ahead_of_keys(group, panel / kPanels);
    const float* query = group.query_copy;
    V sum[kQueries][kWidth];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) sum[q][w] = V::zero();
    }
    for (int64_t block = 0; block < group.head_dim; block += 16, query += 16 * kQueries) {
#pragma GCC unroll 1
      for (int d = 0; d < 16; d += kStep) {
#pragma GCC unroll 16
        for (int w = 0; w < kWidth; ++w) fetch(keys + w * panel_bytes, ahead, kStep * kRow);
#pragma GCC unroll 16
        for (int i = d; i < d + kStep; i += 2, keys += 2 * kRow) {
          V even[kWidth], odd[kWidth];
#pragma GCC unroll 16
          for (int w = 0; w < kWidth; ++w) {
            load_keys<kType>(keys + w * panel_bytes, &even[w], &odd[w]);
          }
#pragma GCC unroll 16
          for (int q = 0; q < kQueries; ++q) {
            const V x = V::broadcast(query[16 * q + i]);
#pragma GCC unroll 16
            for (int w = 0; w < kWidth; ++w) sum[q][w] = mul_add(even[w], x, sum[q][w]);
          }
#pragma GCC unroll 16
          for (int q = 0; q < kQueries; ++q) {
            const V x = V::broadcast(query[16 * q + i + 1]);
#pragma GCC unroll 16
            for (int w = 0; w < kWidth; ++w) sum[q][w] = mul_add(odd[w], x, sum[q][w]);
          }
        }
      }
    }
#pragma GCC unroll 16
    for (int w = 0; w < kWidth; ++w) {
      V scale = V::broadcast(group.scale);
      if constexpr (kType == KvType::kQ8) {
        const float* scales = scales_of(group.keys[panel / kPanels], group.head_dim);
        scale = scale * V::load(scales + 16 * (panel % kPanels + w));
      }
#pragma GCC unroll 16
      for (int q = 0; q < kQueries; ++q) {
        (sum[q][w] * scale).store(scores[q] + 16 * (panel + w));
      }
    }
  }

  /// The same by products of pairs of dimensions.
  template <int kQueries, int kWidth>
  static void dot_tile(const ChunkGroup& group, int panel, Scores& scores) {
    constexpr int64_t kRow = 64;  // two dimensions of 16 tokens
    const int64_t panel_bytes = kRow / 2 * group.head_dim;
    const std::byte* keys = group.keys[panel / kPanels] + panel % kPanels * panel_bytes;
    const ptrdiff_t ahead = ahead_of_keys(group, panel / kPanels);
    const float* query = group.query_copy;
    V sum[kQueries][kWidth];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) sum[q][w] = V::zero();
    }
    for (int64_t block = 0; block < group.head_dim; block += 16, query += 8 * kQueries) {
#pragma GCC unroll 2
      for (int d = 0; d < 8; ++d, keys += kRow) {
        typename PairDot::Pairs key[kWidth];
#pragma GCC unroll 16
        for (int w = 0; w < kWidth; ++w) {
          fetch(keys + w * panel_bytes, ahead, kRow);
          key[w] = PairDot::load(keys + w * panel_bytes);
        }
#pragma GCC unroll 16
        for (int q = 0; q < kQueries; ++q) {
          const auto x = PairDot::broadcast(query + 8 * q + d);
#pragma GCC unroll 16
          for (int w = 0; w < kWidth; ++w) sum[q][w] = PairDot::add(sum[q][w], key[w], x);
        }
      }
    }
    const V scale = V::broadcast(group.scale);
#pragma GCC unroll 16
    for (int w = 0; w < kWidth; ++w) {
#pragma GCC unroll 16
      for (int q = 0; q < kQueries; ++q) {
        (sum[q][w] * scale).store(scores[q] + 16 * (panel + w));
      }
    }
  }

  template <KvType kType, int kQueries>
  static void score(const ChunkGroup& group, int tokens, Scores& scores) {
    // [head_dim / 16, queries, 16]: one address for all queries of a step.
    float* copy = group.query_copy;
    if constexpr (kDots<kType>) {
      for (int64_t d = 0; d < group.head_dim; d += 16) {
        for (int q = 0; q < kQueries; ++q, copy += 8) {
          PairDot::round(V::load(group.queries[q] + d), copy);
        }
      }
      constexpr int kWidth = tile_width(kQueries, kPanels);
      for (int panel = 0; panel * 16 < tokens; panel += kWidth) {
        dot_tile<kQueries, kWidth>(group, panel, scores);
      }
    } else {
      for (int64_t d = 0; d < group.head_dim; d += 16) {
        for (int q = 0; q < kQueries; ++q, copy += 16) V::load(group.queries[q] + d).store(copy);
      }
      // More than 16 sums beside two rows of four panels are more than the registers hold.
      constexpr int kWidth = tile_width(kQueries, kQueries > 4 ? 2 : kPanels);
      for (int panel = 0; panel * 16 < tokens; panel += kWidth) {
        score_tile<kType, kQueries, kWidth>(group, panel, scores);
      }
    }
  }

  /// scores [tokens] become exponentials; the partial gets their largest and their sum. Lanes
  /// beyond the tokens hold anything before and after. kRound: they become bf16, in the first half
  /// of the row.
  template <bool kRound>
  static void softmax(int tokens, float* scores, float* partial) {
    const int whole = tokens / 16 * 16;  // the vectors before the last one, if that is not full
    const V lowest = V::broadcast(-std::numeric_limits<float>::infinity());
    V best = lowest;
    for (int i = 0; i < whole; i += 16) best = max(V::load(scores + i), best);
    if (whole < tokens) {
      const V masked = V::select_first(tokens - whole, V::load(scores + whole), lowest);
      masked.store(scores + whole);
      best = max(masked, best);
    }
    partial[0] = lane_max(best);
    const V largest = V::broadcast(partial[0]);
    const auto exponentials = [&](int i) {
      const V x = V::load(scores + i) - largest;
      if constexpr (kRound) {
        return PairDot::round(PairDot::exp(x), scores + i / 2);
      } else {
        const V e = vec_exp(x);
        e.store(scores + i);
        return e;
      }
    };
    V sum = V::zero();
    for (int i = 0; i < whole; i += 16) sum = sum + exponentials(i);
    if (whole < tokens) {
      sum = sum + V::select_first(tokens - whole, exponentials(whole), V::zero());
    }
    partial[1] = lane_sum(sum);
  }

  /// Adds tokens [begin, end) of the chunk, weighted, to dimensions [d, d + 16 kWidth) of kQueries
  /// queries from `first` on. Of values in bf16, which lie in pairs of tokens, `begin` is the first
  /// of one.
  template <KvType kType, int kQueries, int kWidth>
  static void value_tile(const ChunkGroup& group, int first, int64_t d, int begin, int end,
                         const Scores& weights) {
    constexpr int64_t kBytes = static_cast<int64_t>(KvLayout::type_bytes(kType));
    constexpr int kTokens = kType == KvType::kBF16 ? 2 : 1;  // side by side in a row
    V sum[kQueries][kWidth];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) {
        sum[q][w] = V::load(group.partials[first + q] + kPartialHeader + d + 16 * w);
      }
    }
    while (begin < end) {
      const int block = begin / static_cast<int>(kKvBlockTokens);
      const int block_begin = block * static_cast<int>(kKvBlockTokens);
      const int block_end = block_begin + static_cast<int>(kKvBlockTokens);
      const int stop = end < block_end ? end : block_end;
      const std::byte* row =
          group.values[block] + ((begin - block_begin) * group.head_dim + kTokens * d) * kBytes;
      const ptrdiff_t ahead = ahead_of_values(group, block);
      for (; begin + kTokens <= stop; begin += kTokens, row += kTokens * group.head_dim * kBytes) {
        fetch(row, ahead, 16 * kWidth * kTokens * kBytes);
        if constexpr (kTokens == 2) {
          add_pair<2, kQueries, kWidth>(row, first, begin, weights, sum);
        } else {
          add_token<kType, kQueries, kWidth>(row, first, begin, weights, sum);
        }
      }
      if constexpr (kTokens == 2) {
        if (begin < stop) {  // the last token alone: what lies beside it is not to be seen
          add_pair<1, kQueries, kWidth>(row, first, begin, weights, sum);
          ++begin;
        }
      }
    }
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) {
        sum[q][w].store(group.partials[first + q] + kPartialHeader + d + 16 * w);
      }
    }
  }

  template <KvType kType, int kQueries, int kWidth>
  __attribute__((always_inline)) static void add_token(const std::byte* row, int first, int token,
                                                       const Scores& weights,
                                                       V (&sum)[kQueries][kWidth]) {
    constexpr int64_t kBytes = static_cast<int64_t>(KvLayout::type_bytes(kType));
    V value[kWidth];
#pragma GCC unroll 16
    for (int w = 0; w < kWidth; ++w) value[w] = load_values<kType>(row + 16 * w * kBytes);
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
      const V weight = V::broadcast(weights[first + q][token]);
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) sum[q][w] = mul_add(value[w], weight, sum[q][w]);
    }
  }

  /// One or both tokens of a pair.
  template <int kTokens, int kQueries, int kWidth>
  __attribute__((always_inline)) static void add_pair(const std::byte* row, int first, int token,
                                                      const Scores& weights,
                                                      V (&sum)[kQueries][kWidth]) {
    if constexpr (kDots<KvType::kBF16>) {
      typename PairDot::Pairs value[kWidth];
#pragma GCC unroll 16
      for (int w = 0; w < kWidth; ++w) {
        value[w] = kTokens == 2 ? PairDot::load(row + 64 * w) : PairDot::load_first(row + 64 * w);
      }
#pragma GCC unroll 16
      for (int q = 0; q < kQueries; ++q) {
        const auto weight = PairDot::broadcast(weights[first + q] + token / 2);
#pragma GCC unroll 16
        for (int w = 0; w < kWidth; ++w) sum[q][w] = PairDot::add(sum[q][w], value[w], weight);
      }
    } else {
#pragma GCC unroll 2
      for (int odd = 0; odd < kTokens; ++odd) {
        V value[kWidth];
#pragma GCC unroll 16
        for (int w = 0; w < kWidth; ++w) value[w] = load_token(row + 64 * w, odd);
#pragma GCC unroll 16
        for (int q = 0; q < kQueries; ++q) {
          const V weight = V::broadcast(weights[first + q][token + odd]);
#pragma GCC unroll 16
          for (int w = 0; w < kWidth; ++w) sum[q][w] = mul_add(value[w], weight, sum[q][w]);
        }
      }
    }
  }

  /// Tokens [begin, end) for kQueries queries from `first` on, dimensions from d on: in the widest
  /// tiles that fit, the rest in narrower ones.
  template <KvType kType, int kQueries, int kWidth = tile_width(kQueries, 8)>
  static void add_values(const ChunkGroup& group, int first, int begin, int end,
                         const Scores& weights, int64_t d = 0) {
    for (; d + 16 * kWidth <= group.head_dim; d += 16 * kWidth) {
      value_tile<kType, kQueries, kWidth>(group, first, d, begin, end, weights);
    }
    if constexpr (kWidth > 1) {
      add_values<kType, kQueries, kWidth / 2>(group, first, begin, end, weights, d);
    }
  }

  /// A value's scale goes into the weight of its token.
  static void scale_weights(const ChunkGroup& group, int tokens, float* weights) {
    for (int i = 0; i < tokens; i += 16) {
      const int block = i / static_cast<int>(kKvBlockTokens);
      const float* scales = scales_of(group.values[block], group.head_dim);
      const V scale = V::load(scales + i % kKvBlockTokens);
      (V::load(weights + i) * scale).store(weights + i);
    }
  }

  /// shared: tokens that all queries see; most: that any of them sees.
  template <KvType kType, int kQueries>
  static void weigh_values(const ChunkGroup& group, int shared, int most, Scores& weights) {
    // A pair of tokens is one step of a query's sums, whoever else sees one of them.
    if (kType == KvType::kBF16 && shared < most) shared -= shared % 2;
    if constexpr (kType == KvType::kQ8) {
      for (int q = 0; q < kQueries; ++q) scale_weights(group, group.tokens[q], weights[q]);
    }
    add_values<kType, kQueries>(group, 0, 0, shared, weights);
    // Values that only some queries see: never load what a query must not see, 0 * NaN is NaN.
    for (int q = 0; q < group.count; ++q) {
      if (group.tokens[q] > shared) {
        add_values<kType, 1>(group, q, shared, group.tokens[q], weights);
      }
    }
  }

  /// For a group of kQueries or fewer: the last one fills the places that are left, so that its
  /// partial is written several times, always the same.
  template <int kQueries>
  static void chunk_of(ChunkGroup group, KvType key_type, KvType value_type) {
    alignas(64) Scores scores;
    for (int q = group.count; q < kQueries; ++q) {
      group.queries[q] = group.queries[group.count - 1];
      group.tokens[q] = group.tokens[group.count - 1];
      group.partials[q] = group.partials[group.count - 1];
    }
    int shared = group.tokens[0], most = group.tokens[0];
    for (int q = 1; q < group.count; ++q) {
      shared = group.tokens[q] < shared ? group.tokens[q] : shared;
      most = group.tokens[q] > most ? group.tokens[q] : most;
    }
    switch (key_type) {
      case KvType::kBF16:
        score<KvType::kBF16, kQueries>(group, most, scores);
        break;
      case KvType::kF32:
        score<KvType::kF32, kQueries>(group, most, scores);
        break;
      case KvType::kQ8:
        score<KvType::kQ8, kQueries>(group, most, scores);
        break;
    }
    for (int q = 0; q < kQueries; ++q) {
      clear(group.partials[q], group.head_dim);
      constexpr bool kCanRound = kDots<KvType::kBF16>;
      if (kCanRound && value_type == KvType::kBF16) {
        softmax<kCanRound>(group.tokens[q], scores[q], group.partials[q]);
      } else {
        softmax<false>(group.tokens[q], scores[q], group.partials[q]);
      }
    }
    switch (value_type) {
      case KvType::kBF16:
        return weigh_values<KvType::kBF16, kQueries>(group, shared, most, scores);
      case KvType::kF32:
        return weigh_values<KvType::kF32, kQueries>(group, shared, most, scores);
      case KvType::kQ8:
        return weigh_values<KvType::kQ8, kQueries>(group, shared, most, scores);
    }
  }

  static void chunk(const ChunkGroup& group, KvType key_type, KvType value_type) {
    const int count = group.count;
    if (count == 1) return chunk_of<1>(group, key_type, value_type);
    if (count == 2) return chunk_of<2>(group, key_type, value_type);
    if (count == 3) return chunk_of<3>(group, key_type, value_type);
    if constexpr (V::kMaxQueries >= 6) {
      if (count == 4) return chunk_of<4>(group, key_type, value_type);
      if (count <= 6) return chunk_of<6>(group, key_type, value_type);
    }
    if constexpr (V::kMaxQueries >= 12) {
      if (count <= 8) return chunk_of<8>(group, key_type, value_type);
      return chunk_of<12>(group, key_type, value_type);
    }
  }

  static void clear(float* state, int64_t head_dim) {
    state[0] = -std::numeric_limits<float>::infinity();
    state[1] = 0.0f;
    for (int64_t d = 0; d < head_dim; d += 16) V::zero().store(state + kPartialHeader + d);
  }

  static void merge(float* state, const float* partial, int64_t head_dim) {
    const float largest = partial[0] > state[0] ? partial[0] : state[0];
    const V old_factor = vec_exp(V::broadcast(state[0] - largest));
    const V new_factor = vec_exp(V::broadcast(partial[0] - largest));
    float old_lanes[16], new_lanes[16];
    old_factor.store(old_lanes);
    new_factor.store(new_lanes);
    state[0] = largest;
    state[1] = state[1] * old_lanes[0] + partial[1] * new_lanes[0];
    for (int64_t d = kPartialHeader; d < kPartialHeader + head_dim; d += 16) {
      const V kept = V::load(state + d) * old_factor;
      mul_add(V::load(partial + d), new_factor, kept).store(state + d);
    }
  }

  static void finish(const float* state, int64_t head_dim, float* out) {
    const V sum = V::broadcast(state[1]);
    for (int64_t d = 0; d < head_dim; d += 16) {
      (V::load(state + kPartialHeader + d) / sum).store(out + d);
    }
  }

  static constexpr AttentionKernels table() {
    return {V::kMaxQueries, chunk, clear, merge, finish};
  }
};

}  // namespace orthrus
