#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/convert_tensor.h"
#include "model/head_format.h"
#include "model/runtime_bytes.h"
#include "model/weights.h"

namespace orthrus {

/// Runtime formats of a matrix, and of its twin where there shall be one.
struct Formats {
  WeightFormat own;
  std::optional<WeightFormat> twin;

  Formats of_head() const {
    return {head_format(own), twin ? std::optional(head_format(*twin)) : std::nullopt};
  }
};

/// Packs one matrix after another into memory that they share.
class Packer {
 public:
  /// expected: see WeightArena.
  Packer(ThreadPool& pool, size_t expected) : pool_(pool), arena_(expected) {}

  /// twin: where its format takes less memory, the same values in it, else the result again.
  PackedMatrix pack(const MatrixSource& source, const Formats& formats,
                    PackedMatrix* twin = nullptr) {
    PackedMatrix packed = orthrus::pack(source, formats.own, pool_, &arena_);
    if (twin == nullptr || !formats.twin) return packed;
    const size_t bytes = packed_bytes(source.type, source.rows, source.cols, *formats.twin);
    *twin = bytes < packed.bytes() ? orthrus::pack(source, *formats.twin, pool_, &arena_) : packed;
    return packed;
  }

 private:
  ThreadPool& pool_;
  WeightArena arena_;
};

/// Adds up what matrices take of an arena.
class ArenaSize {
 public:
  /// As Packer::pack does with such a tensor; vectors are none of its business.
  void add(const TensorInfo& info, const Formats& formats) {
    if (info.shape.size() != 2) return;
    const size_t own = runtime_bytes(info, formats.own);
    bytes_ += WeightArena::piece_bytes(own);
    if (!formats.twin) return;
    const size_t twin = runtime_bytes(info, *formats.twin);
    if (twin < own) bytes_ += WeightArena::piece_bytes(twin);
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

inline bool same_as(const MlpWeights& a, const MlpWeights& b) {
  return a.gate_proj.same_as(b.gate_proj) && a.up_proj.same_as(b.up_proj) &&
         a.down_proj.same_as(b.down_proj);
}

/// The layer's MLP from make(member, twin's member), with a twin where it is another.
template <typename Make>
void make_mlp(LayerWeights& layer, bool twins, Make make) {
  MlpWeights twin;
  for (const auto member : {&MlpWeights::gate_proj, &MlpWeights::up_proj, &MlpWeights::down_proj}) {
    layer.mlp.*member = make(member, &(twin.*member));
  }
  if (twins && !same_as(layer.mlp, twin)) layer.draft_mlp = std::move(twin);
}

template <typename Make>
void make_head(Model& model, bool twins, Make make) {
  PackedMatrix twin;
  model.lm_head = make(&twin);
  if (twins && !twin.same_as(model.lm_head)) model.draft_lm_head = std::move(twin);
}

/// Of the rotary embedding, [head_dim / 2].
std::vector<float> inverse_frequencies(const ModelConfig& config);

}  // namespace orthrus
