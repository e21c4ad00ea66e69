#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "trainer/model/packed_row.h"

namespace orthrus::train {

/// Causal attention inside every document. q [tokens, heads, head_dim], keys and values
/// [kv_heads, tokens, head_dim], rotated; returns [tokens, heads, head_dim]. No gradient.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                            std::span<const PackedRow::Document> documents);

/// Blocks that are worked on together: of one document, in order of their anchors.
struct BlockChunk {
  int64_t first_block = 0;
  int64_t blocks = 0;
  int64_t keys_begin = 0;   ///< of the document
  int64_t keys_common = 0;  ///< AR keys [keys_begin, keys_common) are seen by all of the blocks,
  int64_t keys_end = 0;     ///< [keys_common, keys_end) by those whose anchors lie behind them
};

/// Cuts blocks, sorted by anchor, into chunks whose scores take about `limit` floats.
/// rows_per_block: heads * block size.
std::vector<BlockChunk> chunk_blocks(std::span<const Block> blocks,
                                     std::span<const PackedRow::Document> documents,
                                     int64_t rows_per_block, int64_t limit = int64_t{1} << 20);

/// The diffusion view's attention (paper, section 3): every row of a block sees the AR keys of its
/// document strictly before the anchor and all rows of its own block.
/// q [blocks, K, heads, head_dim]; k, v [blocks, K, kv_heads, head_dim]; AR keys and values
/// [kv_heads, tokens, head_dim]; anchors [blocks] int64. Returns [blocks, K, heads, head_dim].
/// Gradients go to q, k and v; the AR keys and values are constants. Scores are computed again in
/// the backward pass instead of kept, so memory grows with the rows alone.
at::Tensor block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& ar_keys, const at::Tensor& ar_values,
                           const at::Tensor& anchors, const std::vector<BlockChunk>& chunks);

}  // namespace orthrus::train
