#include "trainer/model/dual_model.h"

#include "base/error.h"
#include "trainer/model/row_functions.h"

namespace orthrus::train {
namespace {

at::Tensor with_bias(const at::Tensor& x, const at::Tensor& bias) {
  return bias.defined() ? x + bias : x;
}

at::Tensor as_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

DualModel::DualModel(ModelTensors tensors, Precision precision)
    : tensors_(std::move(tensors)), precision_(precision), lm_head_(tensors_.lm_head) {
  for (const LayerTensors& l : tensors_.layers) {
    LayerProducts products{
        {Linear(l.ar.qkv), Linear(l.ar.o)}, {}, Linear(l.gate_up), Linear(l.down)};
    if (l.diff.qkv.defined()) products.diff.emplace(Linear(l.diff.qkv), Linear(l.diff.o));
    layers_.push_back(std::move(products));
  }
}

DualModel::Rotation DualModel::rotation(const std::vector<int64_t>& positions) const {
  const at::Tensor& frequencies = tensors_.rope_inv_freq;
  const at::Tensor position =
      as_tensor(positions, frequencies.device()).to(frequencies.scalar_type());
  const at::Tensor angle = (position.unsqueeze(1) * frequencies.unsqueeze(0)).unsqueeze(1);
  const double factor = config().rope.attention_factor;
  return {angle.cos().mul_(factor), angle.sin().mul_(factor)};
}

at::Tensor DualModel::embed(const std::vector<int64_t>& tokens) const {
  return tensors_.embedding.index_select(0, as_tensor(tokens, tensors_.embedding.device()));
}

at::Tensor DualModel::norm(const at::Tensor& x, const at::Tensor& weight) const {
  return rms_norm(x, weight, config().rms_norm_eps);
}

at::Tensor DualModel::mlp(size_t layer, const at::Tensor& x) const {
  const LayerTensors& t = tensors_.layers[layer];
  const LayerProducts& products = layers_[layer];
  const at::Tensor gate_up =
      with_bias(products.gate_up(norm(x, t.post_attention_norm), precision_), t.gate_up_bias);
  return with_bias(products.down(silu_mul(gate_up), precision_), t.down_bias);
}

DualModel::Heads DualModel::project(size_t layer, const ViewProducts& products,
                                    const AttentionTensors& view, const at::Tensor& x,
                                    const Rotation& rotation) const {
  const ModelConfig& c = config();
  const LayerTensors& t = tensors_.layers[layer];
  const at::Tensor qkv = with_bias(products.qkv(norm(x, t.input_norm), precision_), t.qkv_bias)
                             .view({x.size(0), c.num_heads + 2 * c.num_kv_heads, c.head_dim});
  const std::vector<at::Tensor> parts =
      qkv.split_with_sizes({c.num_heads, c.num_kv_heads, c.num_kv_heads}, 1);
  Heads h{parts[0], parts[1], parts[2]};
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
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ViewProducts& products = layers_[i].ar;
    const Heads h = project(i, products, tensors_.layers[i].ar, x, rotary);
    pass.keys.push_back(h.k.transpose(0, 1).contiguous());
    pass.values.push_back(h.v.transpose(0, 1).contiguous());
    const at::Tensor a = causal_attention(h.q, pass.keys.back(), pass.values.back(), row.documents);
    x = x + with_bias(products.o(a.flatten(1), precision_), tensors_.layers[i].o_bias);
    x = x + mlp(i, x);
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
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ViewProducts& products = *layers_[i].diff;
    const Heads h = project(i, products, tensors_.layers[i].diff, x, rotary);
    const auto by_block = [&](const at::Tensor& t) { return t.unflatten(0, {count, block_size}); };
    const at::Tensor a = block_attention(by_block(h.q), by_block(h.k), by_block(h.v), ar.keys[i],
                                         ar.values[i], anchor_index, chunks);
    x = x + with_bias(products.o(a.reshape({count * block_size, -1}), precision_),
                      tensors_.layers[i].o_bias);
    x = x + mlp(i, x);
  }
  return norm(x, tensors_.final_norm).unflatten(0, {count, block_size});
}

at::Tensor DualModel::logits(const at::Tensor& hidden) const {
  return lm_head_.forward(hidden, precision_);
}

}  // namespace orthrus::train
