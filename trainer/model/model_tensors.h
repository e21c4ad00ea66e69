#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/adapter.h"
#include "formats/checkpoint.h"

namespace orthrus::train {

/// The attention weights of one view in one layer, float32. The three input projections are one
/// matrix, rows in the order q, k, v, so that one product makes all of them.
struct AttentionTensors {
  at::Tensor qkv;             // [(heads + 2 kv_heads) * head_dim, hidden]
  at::Tensor o;               // [hidden, heads * head_dim]
  at::Tensor q_norm, k_norm;  // [head_dim]; undefined where the model has none
};

struct LayerTensors {
  at::Tensor input_norm;  // [hidden]
  AttentionTensors ar;
  AttentionTensors diff;           // undefined tensors where no diffusion view was asked for
  at::Tensor qkv_bias, o_bias;     // of both views; undefined where the model has none
  at::Tensor post_attention_norm;  // [hidden]
  at::Tensor gate_up;              // [2 * intermediate, hidden], gate first
  at::Tensor gate_up_bias;         // undefined where the model has none
  at::Tensor down, down_bias;      // [hidden, intermediate]; bias undefined where none
};

/// A model as float32 tensors, q and k rows in Hugging Face order.
struct ModelTensors {
  ModelConfig config;        ///< block_size and mask_token_id of the diffusion view
  at::Tensor embedding;      // [vocab, hidden]
  at::Tensor lm_head;        // the same tensor where tied
  at::Tensor final_norm;     // [hidden]
  at::Tensor mask;           // [hidden]: what stands for a masked token
  at::Tensor rope_inv_freq;  // [head_dim / 2]
  std::vector<LayerTensors> layers;

  /// The trained tensors with the names of a Hugging Face checkpoint ("..._diff.weight"), and
  /// mask_embedding where config.mask_token_id < 0. q, k and v are views into the joined matrix:
  /// writing to them changes the model.
  std::vector<std::pair<std::string, at::Tensor>> diffusion() const;

  /// Moves every tensor to that device and type.
  void to(const at::TensorOptions& options);
};

/// Where the diffusion view comes from. kCopy: the AR weights and the mean of all embedding rows
/// as the mask, block_size 32, as `orthrus --adapter copy` has it.
enum class DiffusionSource : uint8_t { kNone, kCopy, kCheckpoint, kAdapter };

/// Dequantises every tensor once. `adapter` is for kAdapter. Error(kInput) names a tensor that is
/// missing or of another shape.
ModelTensors load_tensors(const Checkpoint& checkpoint, DiffusionSource source,
                          const Adapter* adapter = nullptr);

}  // namespace orthrus::train
