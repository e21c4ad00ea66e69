#include "trainer/model/dual_model.h"

#include "base/error.h"

namespace orthrus::train {
namespace {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

/// Half-split pairs (i, i + head_dim/2), as Hugging Face rotates. x [rows, heads, head_dim].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(2) / 2;
  const at::Tensor a = x.narrow(2, 0, half);
  const at::Tensor b = x.narrow(2, half, half);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, 2);
}

at::Tensor as_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

DualModel::Rotation DualModel::rotation(const std::vector<int64_t>& positions) const {
  const at::Tensor& frequencies = tensors_.rope_inv_freq;
  const at::Tensor position =
      as_tensor(positions, frequencies.device()).to(frequencies.scalar_type());
  const at::Tensor angle = (position.unsqueeze(1) * frequencies.unsqueeze(0)).unsqueeze(1);
  return {angle.cos(), angle.sin()};
}

at::Tensor DualModel::embed(const std::vector<int64_t>& tokens) const {
  return tensors_.embedding.index_select(0, as_tensor(tokens, tensors_.embedding.device()));
}

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension.
at::Tensor DualModel::norm(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor mean = (x * x).mean(-1, /*keepdim=*/true);
  return x * at::rsqrt(mean + config().rms_norm_eps) * weight;
}

at::Tensor DualModel::mlp(const LayerTensors& layer, const at::Tensor& x) const {
  const int64_t wide = config().intermediate_size;
  const at::Tensor gate_up =
      linear(norm(x, layer.post_attention_norm), layer.gate_up, layer.gate_up_bias);
  const at::Tensor h = at::silu(gate_up.narrow(1, 0, wide)) * gate_up.narrow(1, wide, wide);
  return linear(h, layer.down, layer.down_bias);
}

DualModel::Heads DualModel::project(const LayerTensors& layer, const AttentionTensors& view,
                                    const at::Tensor& x, const Rotation& rotation) const {
  const ModelConfig& c = config();
  const at::Tensor qkv = linear(norm(x, layer.input_norm), view.qkv, layer.qkv_bias)
                             .view({x.size(0), c.num_heads + 2 * c.num_kv_heads, c.head_dim});
  Heads h{qkv.narrow(1, 0, c.num_heads), qkv.narrow(1, c.num_heads, c.num_kv_heads),
          qkv.narrow(1, c.num_heads + c.num_kv_heads, c.num_kv_heads)};
  if (c.qk_norm) {
    h.q = norm(h.q, view.q_norm);
    h.k = norm(h.k, view.k_norm);
  }
  h.q = rotate(h.q, rotation.cos, rotation.sin);
  h.k = rotate(h.k, rotation.cos, rotation.sin);
  return h;
}

ArPass DualModel::forward_ar(const PackedRow& row) const {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> positions;
  for (const PackedRow::Document& d : row.documents) {
    for (int64_t i = d.begin; i < d.end; ++i) positions.push_back(i - d.begin);
  }
  ORTHRUS_CHECK(positions.size() == row.tokens.size());
  const Rotation rotary = rotation(positions);
  ArPass pass;
  at::Tensor x = embed(row.tokens);
  for (const LayerTensors& layer : tensors_.layers) {
    const Heads h = project(layer, layer.ar, x, rotary);
    pass.keys.push_back(h.k.transpose(0, 1).contiguous());
    pass.values.push_back(h.v.transpose(0, 1).contiguous());
    const at::Tensor a = causal_attention(h.q, pass.keys.back(), pass.values.back(), row.documents);
    x = x + linear(a.flatten(1), layer.ar.o, layer.o_bias);
    x = x + mlp(layer, x);
  }
  pass.hidden = norm(x, tensors_.final_norm);
  return pass;
}

at::Tensor DualModel::forward_diffusion(const PackedRow& row, const ArPass& ar,
                                        std::span<const Block> blocks, int64_t block_size) const {
  const ModelConfig& c = config();
  const auto count = static_cast<int64_t>(blocks.size());
  std::vector<int64_t> positions, anchors, tokens;
  for (const Block& block : blocks) {
    ORTHRUS_CHECK(anchors.empty() || anchors.back() <= block.anchor);
    anchors.push_back(block.anchor);
    tokens.push_back(row.tokens[static_cast<size_t>(block.anchor)]);
    const int64_t begin = row.documents[static_cast<size_t>(block.document)].begin;
    for (int64_t i = 0; i < block_size; ++i) positions.push_back(block.anchor - begin + i);
  }
  const Rotation rotary = rotation(positions);
  const std::vector<BlockChunk> chunks =
      chunk_blocks(blocks, row.documents, c.num_heads * block_size);
  const at::Tensor anchor_index = as_tensor(anchors, tensors_.embedding.device());

  const at::Tensor masks = tensors_.mask.expand({count, block_size - 1, c.hidden_size});
  at::Tensor x = at::cat({embed(tokens).unsqueeze(1), masks}, 1).flatten(0, 1);
  for (size_t i = 0; i < tensors_.layers.size(); ++i) {
    const LayerTensors& layer = tensors_.layers[i];
    const Heads h = project(layer, layer.diff, x, rotary);
    const auto by_block = [&](const at::Tensor& t) { return t.unflatten(0, {count, block_size}); };
    const at::Tensor a = block_attention(by_block(h.q), by_block(h.k), by_block(h.v), ar.keys[i],
                                         ar.values[i], anchor_index, chunks);
    x = x + linear(a.reshape({count * block_size, -1}), layer.diff.o, layer.o_bias);
    x = x + mlp(layer, x);
  }
  return norm(x, tensors_.final_norm).unflatten(0, {count, block_size});
}

at::Tensor DualModel::logits(const at::Tensor& hidden) const {
  return at::mm(hidden, tensors_.lm_head.t());
}

}  // namespace orthrus::train
