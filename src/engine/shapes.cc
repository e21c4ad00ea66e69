#include "engine/shapes.h"

#include <array>

#include "base/error.h"

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

}  // namespace

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
