#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/model/model_tensors.h"

namespace orthrus::train {

/// The AR view with a key-value cache: rows of a batch that stand at positions of their own. Matrix
/// products in the type given, all else and the logits in float32; on any device. No gradients.
class ArDecoder {
 public:
  /// Takes copies of the AR tensors where device or type differ from what they have.
  /// type: at::kFloat or at::kBFloat16.
  ArDecoder(const ModelTensors& tensors, at::Device device, at::ScalarType type);

  const ModelConfig& config() const { return config_; }
  at::Device device() const { return device_; }

  /// An empty cache of `rows` rows of `capacity` tokens.
  void reserve(int64_t rows, int64_t capacity);
  int64_t rows() const { return rows_; }

  /// Fills cache rows from their beginning with prompts, not empty. Returns the logits behind their
  /// last tokens: [prompts, vocab].
  at::Tensor prefill(const std::vector<std::span<const int32_t>>& prompts,
                     const std::vector<int64_t>& cache_rows);

  /// One token of every cache row. tokens, positions: [rows] int64 on the device, positions below
  /// `longest`, the number of cached tokens that are looked at. Returns [rows, vocab].
  at::Tensor step(const at::Tensor& tokens, const at::Tensor& positions, int64_t longest);

  /// Leaves those rows, in that order, as rows 0, 1, ...
  void keep(const std::vector<int64_t>& cache_rows);

 private:
  struct Layer {
    at::Tensor input_norm, q_norm, k_norm, post_attention_norm;  // float32
    at::Tensor qkv, qkv_bias, o, o_bias, gate_up, gate_up_bias, down, down_bias;
    at::Tensor keys, values;  // [rows, kv_heads, capacity, head_dim], keys rotated
  };
  struct Heads {
    at::Tensor q, k, v;  // [tokens, heads or kv_heads, head_dim]
  };
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor embed(const at::Tensor& tokens) const;
  Heads project(const Layer& layer, const at::Tensor& x, const at::Tensor& positions) const;
  void finish_layer(const Layer& layer, const at::Tensor& attended, at::Tensor& x) const;
  at::Tensor logits(const at::Tensor& x) const;
  at::Tensor prefill_attention(const Heads& h, int64_t prompts) const;
  at::Tensor prefill_some(std::span<const std::span<const int32_t>> prompts,
                          std::span<const int64_t> cache_rows);
  at::Tensor index(std::span<const int64_t> values) const;

  ModelConfig config_;
  at::Device device_;
  at::ScalarType type_;
  int64_t rows_ = 0;
  at::Tensor embedding_, lm_head_, final_norm_, rope_inv_freq_;
  at::Tensor cos_, sin_;  // [capacity, 1, head_dim / 2]
  std::vector<Layer> layers_;
};

}  // namespace orthrus::train
