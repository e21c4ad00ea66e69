#include "trainer/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace orthrus::train {
namespace {

constexpr int64_t kQueryTile = 128;  // rows that share one upper end of their keys
constexpr double kMasked = -std::numeric_limits<double>::infinity();

double score_scale(const at::Tensor& q) { return 1.0 / std::sqrt(static_cast<double>(q.size(-1))); }

/// [rows, heads, head_dim] -> [kv_heads, rows * group, head_dim]; a row's heads stay together.
at::Tensor group_rows(const at::Tensor& x, int64_t kv_heads) {
  const int64_t group = x.size(1) / kv_heads;
  return x.view({x.size(0), kv_heads, group, x.size(2)})
      .transpose(0, 1)
      .reshape({kv_heads, x.size(0) * group, x.size(2)});
}

at::Tensor ungroup_rows(const at::Tensor& x, int64_t rows) {
  const int64_t group = x.size(1) / rows;
  return x.view({x.size(0), rows, group, x.size(2)})
      .transpose(0, 1)
      .reshape({rows, x.size(0) * group, x.size(2)});
}

void tile_attention(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                    int64_t begin, int64_t first, int64_t last, at::Tensor& out) {
  const int64_t kv_heads = keys.size(0);
  const at::Tensor k = keys.narrow(1, begin, last - begin);
  const at::Tensor rows = group_rows(q.narrow(0, first, last - first), kv_heads);
  at::Tensor scores = at::bmm(rows, k.transpose(1, 2)).mul_(score_scale(q));
  const at::Tensor position = at::arange(last - first, q.options().dtype(at::kLong));
  const at::Tensor future = (position.unsqueeze(0) > position.unsqueeze(1))
                                .repeat_interleave(rows.size(1) / (last - first), 0);
  scores.narrow(2, first - begin, last - first).masked_fill_(future, kMasked);
  const at::Tensor p = at::softmax(scores, -1);
  out.narrow(0, first, last - first)
      .copy_(ungroup_rows(at::bmm(p, values.narrow(1, begin, last - begin)), last - first));
}

/// What both passes over a chunk need.
struct ChunkView {
  ChunkView(const BlockChunk& c, const at::Tensor& q_all, const at::Tensor& k_all,
            const at::Tensor& v_all, const at::Tensor& ar_k, const at::Tensor& ar_v,
            const at::Tensor& anchors)
      : chunk(c),
        kv_heads(ar_k.size(0)),
        block_rows(q_all.size(1)),
        q(grouped(q_all)),
        k(own(k_all)),
        v(own(v_all)),
        keys(ar_k.narrow(1, c.keys_begin, c.keys_end - c.keys_begin)),
        values(ar_v.narrow(1, c.keys_begin, c.keys_end - c.keys_begin)),
        anchor(anchors.narrow(0, c.first_block, c.blocks)) {}

  /// [blocks, K, heads, D] -> [kv_heads, blocks * K * group, D]
  at::Tensor grouped(const at::Tensor& x) const {
    return group_rows(x.narrow(0, chunk.first_block, chunk.blocks).flatten(0, 1), kv_heads);
  }
  at::Tensor ungrouped(const at::Tensor& x) const {
    return ungroup_rows(x, chunk.blocks * block_rows).unflatten(0, {chunk.blocks, block_rows});
  }
  /// [blocks, K, kv_heads, D] -> [kv_heads * blocks, K, D]
  at::Tensor own(const at::Tensor& x) const {
    return x.narrow(0, chunk.first_block, chunk.blocks).permute({2, 0, 1, 3}).flatten(0, 1);
  }
  at::Tensor from_own(const at::Tensor& x) const {
    return x.unflatten(0, {kv_heads, chunk.blocks}).permute({1, 2, 0, 3});
  }
  /// [kv_heads, blocks * K * group, n] <-> [kv_heads * blocks, K * group, n]
  at::Tensor by_block(const at::Tensor& x) const {
    return x.reshape({kv_heads * chunk.blocks, -1, x.size(2)});
  }
  at::Tensor by_head(const at::Tensor& x) const { return x.view({kv_heads, -1, x.size(2)}); }

  /// [kv_heads, blocks * K * group, AR keys + K]
  at::Tensor probabilities(double scale) const {
    at::Tensor cached = at::bmm(q, keys.transpose(1, 2));
    const int64_t partial = chunk.keys_end - chunk.keys_common;
    if (partial > 0) {
      const at::Tensor index = at::arange(chunk.keys_common, chunk.keys_end, anchor.options());
      // [blocks, 1, keys]: the rows of a block see the same.
      const at::Tensor hidden = index.unsqueeze(0).ge(anchor.unsqueeze(1)).unsqueeze(1);
      cached.view({kv_heads, chunk.blocks, -1, cached.size(2)})
          .narrow(3, chunk.keys_common - chunk.keys_begin, partial)
          .masked_fill_(hidden, kMasked);
    }
    const at::Tensor block = by_head(at::bmm(by_block(q), k.transpose(1, 2)));
    return at::softmax(at::cat({cached, block}, 2).mul_(scale), -1);
  }

  const BlockChunk& chunk;
  int64_t kv_heads, block_rows;
  at::Tensor q, k, v, keys, values, anchor;
};

class BlockAttention : public torch::autograd::Function<BlockAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q,
                            const at::Tensor& k, const at::Tensor& v, const at::Tensor& ar_keys,
                            const at::Tensor& ar_values, const at::Tensor& anchors,
                            const std::vector<BlockChunk>* chunks) {
    const at::NoGradGuard no_grad;
    at::Tensor out = at::empty_like(q);
    for (const BlockChunk& chunk : *chunks) {
      const ChunkView view(chunk, q, k, v, ar_keys, ar_values, anchors);
      const int64_t cached = view.keys.size(1);
      const at::Tensor p = view.probabilities(score_scale(q));
      at::Tensor o = at::bmm(p.narrow(2, 0, cached), view.values);
      o.add_(view.by_head(at::bmm(view.by_block(p.narrow(2, cached, k.size(1))), view.v)));
      out.narrow(0, chunk.first_block, chunk.blocks).copy_(view.ungrouped(o));
    }
    context->save_for_backward({q, k, v, ar_keys, ar_values, anchors});
    context->saved_data["chunks"] = pack(*chunks);
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    at::Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
    const at::Tensor grad = grads[0].contiguous();
    for (const BlockChunk& chunk : unpack(context->saved_data["chunks"].toIntVector())) {
      const ChunkView view(chunk, q, k, v, saved[3], saved[4], saved[5]);
      backward_chunk(view, view.grouped(grad), score_scale(q), {dq, dk, dv});
    }
    return {dq, dk, dv, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  struct Gradients {
    at::Tensor &q, &k, &v;
  };

  static void backward_chunk(const ChunkView& view, const at::Tensor& grad, double scale,
                             Gradients out) {
    const int64_t cached = view.keys.size(1);
    const int64_t own = view.block_rows;
    const at::Tensor p = view.probabilities(scale);
    const at::Tensor by_block = view.by_block(grad);
    const auto place = [&](at::Tensor& to, const at::Tensor& value) {
      to.narrow(0, view.chunk.first_block, view.chunk.blocks).copy_(value);
    };
    place(out.v, view.from_own(
                     at::bmm(view.by_block(p.narrow(2, cached, own)).transpose(1, 2), by_block)));
    const at::Tensor dp = at::cat({at::bmm(grad, view.values.transpose(1, 2)),
                                   view.by_head(at::bmm(by_block, view.v.transpose(1, 2)))},
                                  2);
    const at::Tensor ds = at::_softmax_backward_data(dp, p, -1, p.scalar_type()).mul_(scale);
    const at::Tensor ds_own = view.by_block(ds.narrow(2, cached, own));
    at::Tensor dq = at::bmm(ds.narrow(2, 0, cached), view.keys);
    dq.add_(view.by_head(at::bmm(ds_own, view.k)));
    place(out.q, view.ungrouped(dq));
    place(out.k, view.from_own(at::bmm(ds_own.transpose(1, 2), view.by_block(view.q))));
  }

  static std::vector<int64_t> pack(const std::vector<BlockChunk>& chunks) {
    std::vector<int64_t> flat;
    for (const BlockChunk& c : chunks) {
      flat.insert(flat.end(), {c.first_block, c.blocks, c.keys_begin, c.keys_common, c.keys_end});
    }
    return flat;
  }
  static std::vector<BlockChunk> unpack(const std::vector<int64_t>& flat) {
    std::vector<BlockChunk> chunks;
    for (size_t i = 0; i < flat.size(); i += 5) {
      chunks.push_back({flat[i], flat[i + 1], flat[i + 2], flat[i + 3], flat[i + 4]});
    }
    return chunks;
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                            std::span<const PackedRow::Document> documents) {
  const at::NoGradGuard no_grad;
  at::Tensor out = at::empty_like(q);
  for (const PackedRow::Document& d : documents) {
    for (int64_t first = d.begin; first < d.end; first += kQueryTile) {
      tile_attention(q, keys, values, d.begin, first, std::min(first + kQueryTile, d.end), out);
    }
  }
  return out;
}

std::vector<BlockChunk> chunk_blocks(std::span<const Block> blocks,
                                     std::span<const PackedRow::Document> documents,
                                     int64_t rows_per_block, int64_t limit) {
  std::vector<BlockChunk> chunks;
  int64_t document = -1;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const int64_t begin = documents[static_cast<size_t>(block.document)].begin;
    const int64_t keys = block.anchor - begin;
    if (block.document != document || (chunks.back().blocks + 1) * rows_per_block * keys > limit) {
      chunks.push_back({static_cast<int64_t>(i), 0, begin, block.anchor, block.anchor});
      document = block.document;
    }
    ++chunks.back().blocks;
    chunks.back().keys_end = block.anchor;
  }
  return chunks;
}

at::Tensor block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& ar_keys, const at::Tensor& ar_values,
                           const at::Tensor& anchors, const std::vector<BlockChunk>& chunks) {
  return BlockAttention::apply(q, k, v, ar_keys, ar_values, anchors, &chunks);
}

}  // namespace orthrus::train
