#include "formats/tensor_names.h"

#include "base/error.h"

namespace orthrus {
namespace {

/// Appends layer after layer.
struct SpecList {
  std::vector<TensorSpec> specs;
  int64_t layer = 0;

  void add(std::string_view part, std::vector<int64_t> shape) {
    specs.push_back({layer_tensor(layer, part), std::move(shape)});
  }
};

}  // namespace

std::string layer_tensor(int64_t layer, std::string_view part) {
  std::string name = "model.layers." + std::to_string(layer) + ".";
  return name.append(part);
}

std::vector<TensorSpec> ar_tensors(const ModelConfig& c) {
  const int64_t q = c.num_heads * c.head_dim;
  const int64_t kv = c.num_kv_heads * c.head_dim;
  SpecList list;
  list.specs.push_back({std::string(kEmbeddingName), {c.vocab_size, c.hidden_size}});
  for (; list.layer < c.num_layers; ++list.layer) {
    list.add("input_layernorm.weight", {c.hidden_size});
    list.add("self_attn.q_proj.weight", {q, c.hidden_size});
    list.add("self_attn.k_proj.weight", {kv, c.hidden_size});
    list.add("self_attn.v_proj.weight", {kv, c.hidden_size});
    list.add("self_attn.o_proj.weight", {c.hidden_size, q});
    if (c.attention_bias) {
      list.add("self_attn.q_proj.bias", {q});
      list.add("self_attn.k_proj.bias", {kv});
      list.add("self_attn.v_proj.bias", {kv});
    }
    if (c.attention_out_bias) list.add("self_attn.o_proj.bias", {c.hidden_size});
    if (c.qk_norm) {
      list.add("self_attn.q_norm.weight", {c.head_dim});
      list.add("self_attn.k_norm.weight", {c.head_dim});
    }
    list.add("post_attention_layernorm.weight", {c.hidden_size});
    list.add("mlp.gate_proj.weight", {c.intermediate_size, c.hidden_size});
    list.add("mlp.up_proj.weight", {c.intermediate_size, c.hidden_size});
    list.add("mlp.down_proj.weight", {c.hidden_size, c.intermediate_size});
    if (c.mlp_bias) {
      list.add("mlp.gate_proj.bias", {c.intermediate_size});
      list.add("mlp.up_proj.bias", {c.intermediate_size});
      list.add("mlp.down_proj.bias", {c.hidden_size});
    }
  }
  list.specs.push_back({std::string(kFinalNormName), {c.hidden_size}});
  if (!c.tie_word_embeddings) {
    list.specs.push_back({std::string(kLmHeadName), {c.vocab_size, c.hidden_size}});
  }
  return std::move(list.specs);
}

std::vector<TensorSpec> diffusion_tensors(const ModelConfig& c) {
  const int64_t q = c.num_heads * c.head_dim;
  const int64_t kv = c.num_kv_heads * c.head_dim;
  SpecList list;
  for (; list.layer < c.num_layers; ++list.layer) {
    list.add("self_attn.q_proj_diff.weight", {q, c.hidden_size});
    list.add("self_attn.k_proj_diff.weight", {kv, c.hidden_size});
    list.add("self_attn.v_proj_diff.weight", {kv, c.hidden_size});
    list.add("self_attn.o_proj_diff.weight", {c.hidden_size, q});
    if (c.qk_norm) {
      list.add("self_attn.q_norm_diff.weight", {c.head_dim});
      list.add("self_attn.k_norm_diff.weight", {c.head_dim});
    }
  }
  return std::move(list.specs);
}

std::vector<TensorSpec> twinned_tensors(const ModelConfig& c) {
  std::vector<TensorSpec> specs = ar_tensors(c);
  const std::string_view head = c.tie_word_embeddings ? kEmbeddingName : kLmHeadName;
  std::erase_if(specs, [&](const TensorSpec& spec) {
    const bool shared = spec.name == head || spec.name.find(".mlp.") != std::string::npos;
    return !shared || spec.shape.size() != 2;
  });
  return specs;
}

bool is_diffusion_tensor(std::string_view name) {
  return name.find("_diff.") != std::string_view::npos || name == kMaskEmbeddingName;
}

void check_tensors(const TensorSource& tensors, const std::vector<TensorSpec>& specs,
                   bool allow_i8) {
  for (const TensorSpec& spec : specs) {
    const TensorInfo& tensor = tensors.require(spec.name, spec.shape);
    const bool is_vector = spec.shape.size() == 1;
    const bool is_float = tensor.type == TensorType::kF32 || tensor.type == TensorType::kF16 ||
                          tensor.type == TensorType::kBF16;
    const bool is_i8 = tensor.type == TensorType::kI8;
    if (is_vector ? !is_float : is_i8 && !allow_i8) {
      fail("{}: tensor {} has type {}, expected {}", tensors.path(), spec.name,
           traits(tensor.type).name,
           is_vector ? "F32, F16 or BF16" : "a float or block type (I8 is for adapters)");
    }
  }
}

}  // namespace orthrus
