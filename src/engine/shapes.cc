#include "engine/shapes.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/error.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

/// As in the config.json files that Hugging Face hosts for these models.
std::array<ModelConfig, 4> make_shapes() {
  ModelConfig qwen;
  qwen.architecture = Architecture::kQwen3;
  qwen.name = "qwen3-0.6b";
  qwen.vocab_size = 151936;
  qwen.hidden_size = 1024;
  qwen.intermediate_size = 3072;
  qwen.num_layers = 28;
  qwen.num_heads = 16;
  qwen.num_kv_heads = 8;
  qwen.head_dim = 128;
  qwen.max_position_embeddings = 40960;
  qwen.rope.theta = 1e6;
  qwen.qk_norm = true;
  qwen.tie_word_embeddings = true;

  ModelConfig larger = qwen;
  larger.name = "qwen3-1.7b";
  larger.hidden_size = 2048;
  larger.intermediate_size = 6144;

  ModelConfig largest = qwen;
  largest.name = "qwen3-8b";
  largest.hidden_size = 4096;
  largest.intermediate_size = 12288;
  largest.num_layers = 36;
  largest.num_heads = 32;
  largest.tie_word_embeddings = false;

  ModelConfig smol;
  smol.architecture = Architecture::kLlama;
  smol.name = "smollm2-135m";
  smol.vocab_size = 49152;
  smol.hidden_size = 576;
  smol.intermediate_size = 1536;
  smol.num_layers = 30;
  smol.num_heads = 9;
  smol.num_kv_heads = 3;
  smol.head_dim = 64;
  smol.max_position_embeddings = 8192;
  smol.rms_norm_eps = 1e-5;
  smol.rope.theta = 1e5;
  smol.tie_word_embeddings = true;
  return {qwen, larger, largest, smol};
}

class ShapeTensors : public TensorSource {
 public:
  explicit ShapeTensors(const ModelConfig& shape) {
    for (const auto& specs : {ar_tensors(shape), diffusion_tensors(shape)}) {
      for (const TensorSpec& spec : specs) {
        tensors_.push_back({spec.name, TensorType::kBF16, spec.shape, {}, 0});
      }
    }
  }
  const TensorInfo* find(std::string_view name) const override {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const TensorInfo& tensor) { return tensor.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
  }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void drop(const TensorInfo&) const override {}

 private:
  std::vector<TensorInfo> tensors_;
};

}  // namespace

Checkpoint shape_checkpoint(const ModelConfig& shape) {
  return {shape.name, shape, std::make_unique<ShapeTensors>(shape)};
}

ModelConfig named_shape(const std::string& name) {
  for (const ModelConfig& shape : make_shapes()) {
    if (shape.name == name) return shape;
  }
  fail_usage("unknown shape {}: expected one of {}", name, shape_names());
}

std::string shape_names() {
  std::string names;
  for (const ModelConfig& shape : make_shapes()) {
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  return names;
}

}  // namespace orthrus
