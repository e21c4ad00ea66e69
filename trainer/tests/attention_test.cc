// The two-part attention of the diffusion view against the definition, values and gradients, in
// float64.
#include "trainer/model/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orthrus::train {
namespace {

struct Case {
  int64_t heads = 6, kv_heads = 2, dim = 8, block = 4;
  std::vector<PackedRow::Document> documents{{0, 20}, {20, 33}};
  std::vector<Block> blocks{{0, 0}, {3, 0}, {4, 0}, {19, 0}, {20, 1}, {27, 1}, {32, 1}};
  at::Tensor q, k, v, ar_keys, ar_values, anchors;

  Case() {
    at::manual_seed(3);
    const auto options = at::TensorOptions(at::kDouble);
    const auto count = static_cast<int64_t>(blocks.size());
    q = at::randn({count, block, heads, dim}, options).requires_grad_();
    k = at::randn({count, block, kv_heads, dim}, options).requires_grad_();
    v = at::randn({count, block, kv_heads, dim}, options).requires_grad_();
    ar_keys = at::randn({kv_heads, 33, dim}, options);
    ar_values = at::randn({kv_heads, 33, dim}, options);
    anchors = at::empty({count}, at::kLong);
    for (int64_t b = 0; b < count; ++b) anchors[b] = blocks[static_cast<size_t>(b)].anchor;
  }

  /// Head by head, straight from the definition; autograd makes the gradients.
  at::Tensor expected() const {
    std::vector<at::Tensor> out;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto index = static_cast<int64_t>(b);
      const int64_t begin = documents[static_cast<size_t>(blocks[b].document)].begin;
      std::vector<at::Tensor> heads_out;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t kv = h / (heads / kv_heads);
        const auto all = [&](const at::Tensor& ar, const at::Tensor& own) {
          return at::cat({ar[kv].slice(0, begin, blocks[b].anchor), own[index].select(1, kv)});
        };
        const at::Tensor scores = at::mm(q[index].select(1, h), all(ar_keys, k).t());
        const at::Tensor p = at::softmax(scores / std::sqrt(static_cast<double>(dim)), -1);
        heads_out.push_back(at::mm(p, all(ar_values, v)));
      }
      out.push_back(at::stack(heads_out, 1));
    }
    return at::stack(out);
  }
};

TEST(BlockAttention, ValuesAndGradientsForAnyChunking) {
  Case c;
  const at::Tensor expected = c.expected();
  const at::Tensor weight = at::randn_like(expected);
  expected.backward(weight);
  const std::vector<at::Tensor> gradients{c.q.grad().clone(), c.k.grad().clone(),
                                          c.v.grad().clone()};
  for (const int64_t limit : {1, 500, 1 << 20}) {
    for (at::Tensor* t : {&c.q, &c.k, &c.v}) t->mutable_grad() = at::Tensor();
    const auto chunks = chunk_blocks(c.blocks, c.documents, c.heads * c.block, limit);
    EXPECT_GE(chunks.size(), c.documents.size());
    const at::Tensor out =
        block_attention(c.q, c.k, c.v, c.ar_keys, c.ar_values, c.anchors, chunks);
    EXPECT_LT((out - expected).abs().max().item<double>(), 1e-12) << limit;
    out.backward(weight);
    EXPECT_LT((c.q.grad() - gradients[0]).abs().max().item<double>(), 1e-12) << limit;
    EXPECT_LT((c.k.grad() - gradients[1]).abs().max().item<double>(), 1e-12) << limit;
    EXPECT_LT((c.v.grad() - gradients[2]).abs().max().item<double>(), 1e-12) << limit;
  }
}

TEST(BlockAttention, ChunksCoverAllBlocksOnceAndStayInDocuments) {
  const Case c;
  for (const int64_t limit : {1, 500, 1 << 20}) {
    int64_t next = 0;
    for (const BlockChunk& chunk : chunk_blocks(c.blocks, c.documents, 24, limit)) {
      EXPECT_EQ(chunk.first_block, next);
      for (int64_t b = next; b < next + chunk.blocks; ++b) {
        const Block& block = c.blocks[static_cast<size_t>(b)];
        EXPECT_EQ(c.documents[static_cast<size_t>(block.document)].begin, chunk.keys_begin);
        EXPECT_GE(block.anchor, chunk.keys_common);
        EXPECT_LE(block.anchor, chunk.keys_end);
      }
      next += chunk.blocks;
    }
    EXPECT_EQ(next, static_cast<int64_t>(c.blocks.size()));
  }
}

TEST(CausalAttention, DocumentsLongerThanATile) {
  at::manual_seed(4);
  const std::vector<PackedRow::Document> documents{{0, 300}, {300, 301}};
  const at::Tensor q = at::randn({301, 4, 8}, at::kDouble);
  const at::Tensor keys = at::randn({2, 301, 8}, at::kDouble);
  const at::Tensor values = at::randn({2, 301, 8}, at::kDouble);
  const at::Tensor out = causal_attention(q, keys, values, documents);
  for (int64_t h = 0; h < 4; ++h) {
    for (const PackedRow::Document& d : documents) {
      const at::Tensor scores =
          at::mm(q.select(1, h).slice(0, d.begin, d.end), keys[h / 2].slice(0, d.begin, d.end).t());
      const at::Tensor future = at::ones_like(scores).triu(1).to(at::kBool);
      const at::Tensor p = at::softmax(
          (scores / std::sqrt(8.0)).masked_fill(future, -std::numeric_limits<double>::infinity()),
          -1);
      const at::Tensor expected = at::mm(p, values[h / 2].slice(0, d.begin, d.end));
      EXPECT_LT((out.select(1, h).slice(0, d.begin, d.end) - expected).abs().max().item<double>(),
                1e-12);
    }
  }
}

}  // namespace
}  // namespace orthrus::train
