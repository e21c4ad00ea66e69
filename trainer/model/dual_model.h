#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trainer/model/attention.h"
#include "trainer/model/linear.h"
#include "trainer/model/model_tensors.h"

namespace orthrus::train {

/// What the AR view leaves for the diffusion view of the same row.
struct ArPass {
  at::Tensor hidden;                     // [tokens, hidden], after the final norm
  std::vector<at::Tensor> keys, values;  // a layer: [kv_heads, tokens, head_dim], keys rotated
};

/// Both views of an Orthrus model over packed rows (paper, section 3), on the device of the
/// tensors. Gradients flow to whatever tensor of the diffusion view requires them.
class DualModel {
 public:
  explicit DualModel(ModelTensors tensors, Precision precision = Precision::kFloat32);

  const ModelConfig& config() const { return tensors_.config; }
  const ModelTensors& tensors() const { return tensors_; }
  Precision precision() const { return precision_; }
  void set_precision(Precision precision) { precision_ = precision; }

  /// The whole row in one pass, causal inside each document. No gradient.
  ArPass forward_ar(const PackedRow& row) const;

  /// `blocks`, in order of their anchors, of block_size rows each: the anchor's token, then masks,
  /// at the anchor's position and those behind it. Returns [blocks, block_size, hidden] after the
  /// final norm; row i proposes the token at anchor + i + 1.
  at::Tensor forward_diffusion(const PackedRow& row, const ArPass& ar,
                               std::span<const Block> blocks, int64_t block_size) const;

  /// [rows, hidden] -> [rows, vocab], without gradients.
  at::Tensor logits(const at::Tensor& hidden) const;
  const Linear& lm_head() const { return lm_head_; }

 private:
  struct Rotation {
    at::Tensor cos, sin;  // [rows, 1, head_dim / 2]
  };
  Rotation rotation(const std::vector<int64_t>& positions) const;
  at::Tensor embed(const std::vector<int64_t>& tokens) const;
  struct ViewProducts {
    Linear qkv, o;
  };
  struct LayerProducts {
    ViewProducts ar;
    std::optional<ViewProducts> diff;
    Linear gate_up, down;
  };
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor mlp(size_t layer, const at::Tensor& x) const;
  struct Heads {
    at::Tensor q, k, v;  // [rows, heads or kv_heads, head_dim], q and k rotated
  };
  Heads project(size_t layer, const ViewProducts& products, const AttentionTensors& view,
                const at::Tensor& x, const Rotation& rotation) const;

  ModelTensors tensors_;
  Precision precision_;
  std::vector<LayerProducts> layers_;
  Linear lm_head_;
};

}  // namespace orthrus::train
