#include "trainer/model/ar_decoder.h"

#include <ATen/TensorIndexing.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "trainer/model/row_functions.h"

namespace orthrus::train {
namespace {

constexpr int64_t kPrefillScores = int64_t{1} << 26;  // floats of one layer's scores in a pass
constexpr double kMasked = -std::numeric_limits<double>::infinity();

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

}  // namespace

ArDecoder::ArDecoder(const ModelTensors& tensors, at::Device device, at::ScalarType type)
    : config_(tensors.config), device_(device), type_(type) {
  const at::InferenceMode inference;
  const auto as = [&](const at::Tensor& tensor, at::ScalarType to) {
    return tensor.defined() ? tensor.detach().to(device, to) : tensor;
  };
  const auto exact = [&](const at::Tensor& tensor) { return as(tensor, at::kFloat); };
  const auto matrix = [&](const at::Tensor& tensor) { return as(tensor, type); };
  embedding_ = matrix(tensors.embedding);
  // bf16 has too few digits to tell the best of many logits.
  lm_head_ = exact(tensors.lm_head);
  final_norm_ = exact(tensors.final_norm);
  rope_inv_freq_ = exact(tensors.rope_inv_freq);
  for (const LayerTensors& t : tensors.layers) {
    Layer& layer = layers_.emplace_back();
    layer.input_norm = exact(t.input_norm);
    layer.q_norm = exact(t.ar.q_norm);
    layer.k_norm = exact(t.ar.k_norm);
    layer.post_attention_norm = exact(t.post_attention_norm);
    layer.qkv = matrix(t.ar.qkv);
    layer.qkv_bias = matrix(t.qkv_bias);
    layer.o = matrix(t.ar.o);
    layer.o_bias = matrix(t.o_bias);
    layer.gate_up = matrix(t.gate_up);
    layer.gate_up_bias = matrix(t.gate_up_bias);
    layer.down = matrix(t.down);
    layer.down_bias = matrix(t.down_bias);
  }
}

at::Tensor ArDecoder::index(std::span<const int64_t> values) const {
  return at::tensor(at::ArrayRef<int64_t>(values.data(), values.size()), at::kLong).to(device_);
}

void ArDecoder::reserve(int64_t rows, int64_t capacity) {
  const at::InferenceMode inference;
  rows_ = rows;
  const auto options = at::TensorOptions(device_).dtype(type_);
  for (Layer& layer : layers_) {
    layer.keys = layer.values = at::Tensor();  // before the new ones
  }
  for (Layer& layer : layers_) {
    // Zeros: what is masked must still be finite.
    layer.keys = at::zeros({rows, config_.num_kv_heads, capacity, config_.head_dim}, options);
    layer.values = at::zeros_like(layer.keys);
  }
  const at::Tensor position = at::arange(capacity, rope_inv_freq_.options());
  const at::Tensor angle = (position.unsqueeze(1) * rope_inv_freq_).unsqueeze(1);
  cos_ = angle.cos().mul_(config_.rope.attention_factor);
  sin_ = angle.sin().mul_(config_.rope.attention_factor);
}

void ArDecoder::keep(const std::vector<int64_t>& cache_rows) {
  const at::InferenceMode inference;
  const at::Tensor kept = index(cache_rows);
  for (Layer& layer : layers_) {
    layer.keys = layer.keys.index_select(0, kept);
    layer.values = layer.values.index_select(0, kept);
  }
  rows_ = static_cast<int64_t>(cache_rows.size());
}

at::Tensor ArDecoder::norm(const at::Tensor& x, const at::Tensor& weight) const {
  return rms_norm(x, weight, config_.rms_norm_eps);
}

at::Tensor ArDecoder::embed(const at::Tensor& tokens) const {
  return embedding_.index_select(0, tokens).to(at::kFloat);
}

ArDecoder::Heads ArDecoder::project(const Layer& layer, const at::Tensor& x,
                                    const at::Tensor& positions) const {
  const ModelConfig& c = config_;
  const int64_t rotated = c.num_heads + c.num_kv_heads;
  const at::Tensor qkv = linear(norm(x, layer.input_norm).to(type_), layer.qkv, layer.qkv_bias)
                             .view({x.size(0), rotated + c.num_kv_heads, c.head_dim});
  at::Tensor qk = qkv.narrow(1, 0, rotated).to(at::kFloat);
  if (c.qk_norm) {
    qk = at::cat({norm(qk.narrow(1, 0, c.num_heads), layer.q_norm),
                  norm(qk.narrow(1, c.num_heads, c.num_kv_heads), layer.k_norm)},
                 1);
  }
  qk = rotate(qk, cos_.index_select(0, positions), sin_.index_select(0, positions)).to(type_);
  return {qk.narrow(1, 0, c.num_heads), qk.narrow(1, c.num_heads, c.num_kv_heads),
          qkv.narrow(1, rotated, c.num_kv_heads)};
}

/// attended [tokens, heads * head_dim]; x [tokens, hidden] is added to.
void ArDecoder::finish_layer(const Layer& layer, const at::Tensor& attended, at::Tensor& x) const {
  x.add_(linear(attended, layer.o, layer.o_bias));
  const at::Tensor gate_up =
      linear(norm(x, layer.post_attention_norm).to(type_), layer.gate_up, layer.gate_up_bias);
  x.add_(linear(silu_mul(gate_up), layer.down, layer.down_bias));
}

at::Tensor ArDecoder::logits(const at::Tensor& x) const {
  return at::mm(norm(x, final_norm_), lm_head_.t());
}

at::Tensor ArDecoder::step(const at::Tensor& tokens, const at::Tensor& positions, int64_t longest) {
  const at::InferenceMode inference;
  const ModelConfig& c = config_;
  const int64_t group = c.num_heads / c.num_kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  const at::Tensor row = at::arange(rows_, positions.options());
  const at::Tensor hidden =
      (at::arange(longest, positions.options()) > positions.unsqueeze(1)).unsqueeze(1);
  const auto cached = [&](const at::Tensor& cache) {  // [rows * kv_heads, longest, head_dim]
    return cache.flatten(0, 1).narrow(1, 0, longest);
  };
  at::Tensor x = embed(tokens);
  for (Layer& layer : layers_) {
    const Heads h = project(layer, x, positions);
    layer.keys.transpose(1, 2).index_put_({row, positions}, h.k);
    layer.values.transpose(1, 2).index_put_({row, positions}, h.v);
    const at::Tensor q = h.q.reshape({rows_ * c.num_kv_heads, group, c.head_dim});
    at::Tensor scores = at::bmm(q, cached(layer.keys).transpose(1, 2)).to(at::kFloat);
    scores = scores.mul_(scale).view({rows_, c.num_heads, longest}).masked_fill_(hidden, kMasked);
    const at::Tensor p = at::softmax(scores, -1).to(type_).view({q.size(0), group, longest});
    finish_layer(layer, at::bmm(p, cached(layer.values)).view({rows_, -1}), x);
  }
  return logits(x);
}

/// Causal; h of prompts * T tokens. Returns [prompts * T, heads * head_dim].
at::Tensor ArDecoder::prefill_attention(const Heads& h, int64_t prompts) const {
  const ModelConfig& c = config_;
  const int64_t length = h.q.size(0) / prompts, group = c.num_heads / c.num_kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  const at::Tensor q = h.q.view({prompts, length, c.num_kv_heads, group, c.head_dim})
                           .permute({0, 2, 3, 1, 4})
                           .reshape({prompts * c.num_kv_heads, group * length, c.head_dim});
  const auto by_head = [&](const at::Tensor& t) {
    return t.unflatten(0, {prompts, length}).transpose(1, 2).reshape({-1, length, c.head_dim});
  };
  const at::Tensor position = at::arange(length, at::TensorOptions(device_).dtype(at::kLong));
  const at::Tensor future = position.unsqueeze(0) > position.unsqueeze(1);
  at::Tensor scores = at::bmm(q, by_head(h.k).transpose(1, 2)).to(at::kFloat).mul_(scale);
  scores = scores.view({-1, group, length, length}).masked_fill_(future, kMasked);
  const at::Tensor p = at::softmax(scores, -1).to(type_).view({q.size(0), -1, length});
  return at::bmm(p, by_head(h.v))
      .view({prompts, c.num_heads, length, c.head_dim})
      .transpose(1, 2)
      .reshape({prompts * length, -1});
}

/// The shorter prompts are padded behind their ends: nothing of theirs sees the padding, and what
/// it leaves in the cache lies at positions that are written before they are looked at.
at::Tensor ArDecoder::prefill_some(std::span<const std::span<const int32_t>> prompts,
                                   std::span<const int64_t> cache_rows) {
  const auto count = static_cast<int64_t>(prompts.size());
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  const auto length = static_cast<int64_t>(longest);
  std::vector<int64_t> tokens(prompts.size() * longest, 0), ends;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::copy(prompts[i].begin(), prompts[i].end(),
              tokens.begin() + static_cast<int64_t>(i) * length);
    ends.push_back(static_cast<int64_t>(i * longest + prompts[i].size()) - 1);
  }
  const at::Tensor positions =
      at::arange(length, at::TensorOptions(device_).dtype(at::kLong)).repeat({count});
  const at::Tensor rows = index(cache_rows);
  at::Tensor x = embed(index(tokens));
  for (Layer& layer : layers_) {
    const Heads h = project(layer, x, positions);
    const auto store = [&](at::Tensor& cache, const at::Tensor& t) {
      cache.narrow(2, 0, length)
          .index_copy_(0, rows, t.unflatten(0, {count, length}).transpose(1, 2));
    };
    store(layer.keys, h.k);
    store(layer.values, h.v);
    finish_layer(layer, prefill_attention(h, count), x);
  }
  return logits(x.index_select(0, index(ends)));
}

at::Tensor ArDecoder::prefill(const std::vector<std::span<const int32_t>>& prompts,
                              const std::vector<int64_t>& cache_rows) {
  ORTHRUS_CHECK(!prompts.empty() && prompts.size() == cache_rows.size());
  const at::InferenceMode inference;
  std::vector<at::Tensor> parts;
  for (size_t first = 0; first < prompts.size();) {
    size_t longest = 0, last = first;
    for (; last < prompts.size(); ++last) {
      longest = std::max(longest, prompts[last].size());
      const auto count = static_cast<int64_t>((last - first + 1) * longest * longest);
      if (last > first && count * config_.num_heads > kPrefillScores) break;
    }
    parts.push_back(prefill_some(std::span(prompts).subspan(first, last - first),
                                 std::span(cache_rows).subspan(first, last - first)));
    first = last;
  }
  return at::cat(parts);
}

}  // namespace orthrus::train
