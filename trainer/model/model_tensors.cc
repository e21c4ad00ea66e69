#include "trainer/model/model_tensors.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/tensor_names.h"
#include "kernels/packed_matrix.h"

namespace orthrus::train {
namespace {

/// As TensorInfo says: file row h*D + 2*i + j is row h*D + j*D/2 + i.
at::Tensor to_hf_rows(const at::Tensor& tensor, int64_t heads) {
  if (heads == 0) return tensor;
  const int64_t half = tensor.size(0) / heads / 2;
  return tensor.view({heads, half, 2, -1}).transpose(1, 2).reshape(tensor.sizes()).contiguous();
}

class Reader {
 public:
  explicit Reader(const TensorSource& tensors) : tensors_(tensors) {}

  template <typename... Sizes>
  at::Tensor operator()(std::string_view name, Sizes... sizes) const {
    const std::array<int64_t, sizeof...(Sizes)> shape{sizes...};
    const TensorInfo& info = tensors_.require(name, shape);
    at::Tensor values = at::empty(shape, at::kFloat);
    dequantize(info.type, info.data,
               {values.data_ptr<float>(), static_cast<size_t>(values.numel())});
    if (info.type == TensorType::kI8) {
      values.mul_((*this)(std::string(name) + std::string(kScaleSuffix), shape[0]).unsqueeze(1));
    }
    tensors_.drop(info);
    return to_hf_rows(values, info.interleaved_heads);
  }

  template <typename... Sizes>
  at::Tensor optional(bool present, std::string_view name, Sizes... sizes) const {
    return present ? (*this)(name, sizes...) : at::Tensor();
  }

 private:
  const TensorSource& tensors_;
};

struct Sizes {
  explicit Sizes(const ModelConfig& c)
      : hidden(c.hidden_size), q(c.num_heads * c.head_dim), kv(c.num_kv_heads * c.head_dim) {}
  int64_t hidden, q, kv;
};

/// suffix: "" for the AR view, "_diff" for the diffusion view.
AttentionTensors read_attention(const Reader& read, const ModelConfig& c, int64_t layer,
                                std::string_view suffix) {
  const Sizes s(c);
  const auto name = [&](std::string_view part) {
    return layer_tensor(layer, fmt::format("self_attn.{}{}.weight", part, suffix));
  };
  AttentionTensors t;
  t.qkv = at::cat({read(name("q_proj"), s.q, s.hidden), read(name("k_proj"), s.kv, s.hidden),
                   read(name("v_proj"), s.kv, s.hidden)});
  t.o = read(name("o_proj"), s.hidden, s.q);
  t.q_norm = read.optional(c.qk_norm, name("q_norm"), c.head_dim);
  t.k_norm = read.optional(c.qk_norm, name("k_norm"), c.head_dim);
  return t;
}

LayerTensors read_layer(const Reader& read, const ModelConfig& c, int64_t layer) {
  const Sizes s(c);
  const int64_t wide = c.intermediate_size;
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  LayerTensors t;
  t.input_norm = read(name("input_layernorm.weight"), s.hidden);
  t.ar = read_attention(read, c, layer, "");
  if (c.attention_bias) {
    t.qkv_bias = at::cat({read(name("self_attn.q_proj.bias"), s.q),
                          read(name("self_attn.k_proj.bias"), s.kv),
                          read(name("self_attn.v_proj.bias"), s.kv)});
  }
  t.o_bias = read.optional(c.attention_out_bias, name("self_attn.o_proj.bias"), s.hidden);
  t.post_attention_norm = read(name("post_attention_layernorm.weight"), s.hidden);
  t.gate_up = at::cat({read(name("mlp.gate_proj.weight"), wide, s.hidden),
                       read(name("mlp.up_proj.weight"), wide, s.hidden)});
  if (c.mlp_bias) {
    t.gate_up_bias =
        at::cat({read(name("mlp.gate_proj.bias"), wide), read(name("mlp.up_proj.bias"), wide)});
  }
  t.down = read(name("mlp.down_proj.weight"), s.hidden, wide);
  t.down_bias = read.optional(c.mlp_bias, name("mlp.down_proj.bias"), s.hidden);
  return t;
}

at::Tensor copy_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.clone() : tensor; }

void read_diffusion_view(ModelTensors& model, const Checkpoint& checkpoint, DiffusionSource source,
                         const Adapter* adapter) {
  if (source == DiffusionSource::kNone) return;
  ModelConfig& c = model.config;
  if (source == DiffusionSource::kCopy) {
    for (LayerTensors& layer : model.layers) {
      layer.diff = {layer.ar.qkv.clone(), layer.ar.o.clone(), copy_of(layer.ar.q_norm),
                    copy_of(layer.ar.k_norm)};
    }
    c.block_size = 32;
    c.mask_token_id = -1;
    model.mask = model.embedding.mean(0);
    return;
  }
  const bool from_adapter = source == DiffusionSource::kAdapter;
  ORTHRUS_CHECK(!from_adapter || adapter != nullptr);
  const Reader read(from_adapter ? *adapter->tensors : *checkpoint.tensors);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    model.layers[static_cast<size_t>(i)].diff = read_attention(read, c, i, "_diff");
  }
  if (from_adapter) {
    c.block_size = adapter->block_size;
    c.mask_token_id = adapter->mask_token_id;
  }
  model.mask = c.mask_token_id < 0 ? read(kMaskEmbeddingName, c.hidden_size)
                                   : model.embedding[c.mask_token_id].clone();
}

/// The engine's frequencies: float32 powers, as Hugging Face computes them.
at::Tensor inverse_frequencies(const ModelConfig& c) {
  at::Tensor result = at::empty({c.head_dim / 2}, at::kFloat);
  float* const out = result.data_ptr<float>();
  for (int64_t i = 0; i < c.head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(c.head_dim);
    const double power = std::pow(c.rope.theta, static_cast<double>(exponent));
    out[i] = 1.0f / static_cast<float>(power);
    if (!c.rope.divisors.empty()) out[i] /= c.rope.divisors[static_cast<size_t>(i)];
  }
  return result;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> ModelTensors::diffusion() const {
  const Sizes s(config);
  std::vector<std::pair<std::string, at::Tensor>> result;
  for (size_t i = 0; i < layers.size(); ++i) {
    const AttentionTensors& t = layers[i].diff;
    const auto add = [&](std::string_view part, const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      const std::string name = fmt::format("self_attn.{}_diff.weight", part);
      result.emplace_back(layer_tensor(static_cast<int64_t>(i), name), tensor);
    };
    const at::Tensor qkv = t.qkv.detach();
    add("q_proj", qkv.narrow(0, 0, s.q));
    add("k_proj", qkv.narrow(0, s.q, s.kv));
    add("v_proj", qkv.narrow(0, s.q + s.kv, s.kv));
    add("o_proj", t.o.detach());
    add("q_norm", t.q_norm.defined() ? t.q_norm.detach() : t.q_norm);
    add("k_norm", t.k_norm.defined() ? t.k_norm.detach() : t.k_norm);
  }
  if (config.mask_token_id < 0) result.emplace_back(std::string(kMaskEmbeddingName), mask.detach());
  return result;
}

void ModelTensors::to(const at::TensorOptions& options) {
  const bool tied = lm_head.is_same(embedding);
  const auto move = [&](auto&... tensors) {
    ((tensors = tensors.defined() ? tensors.to(options) : tensors), ...);
  };
  move(embedding, final_norm, mask, rope_inv_freq);
  if (tied) {
    lm_head = embedding;
  } else {
    move(lm_head);
  }
  for (LayerTensors& t : layers) {
    move(t.input_norm, t.ar.qkv, t.ar.o, t.ar.q_norm, t.ar.k_norm, t.diff.qkv, t.diff.o,
         t.diff.q_norm, t.diff.k_norm, t.qkv_bias, t.o_bias, t.post_attention_norm, t.gate_up,
         t.gate_up_bias, t.down, t.down_bias);
  }
}

ModelTensors load_tensors(const Checkpoint& checkpoint, DiffusionSource source,
                          const Adapter* adapter) {
  const at::NoGradGuard no_grad;
  ModelTensors model;
  model.config = checkpoint.config;
  const ModelConfig& c = model.config;
  check_tensors(*checkpoint.tensors, ar_tensors(c));
  const Reader read(*checkpoint.tensors);
  model.embedding = read(kEmbeddingName, c.vocab_size, c.hidden_size);
  model.lm_head =
      c.tie_word_embeddings ? model.embedding : read(kLmHeadName, c.vocab_size, c.hidden_size);
  model.final_norm = read(kFinalNormName, c.hidden_size);
  for (int64_t i = 0; i < c.num_layers; ++i) model.layers.push_back(read_layer(read, c, i));
  model.rope_inv_freq = inverse_frequencies(c);
  read_diffusion_view(model, checkpoint, source, adapter);
  return model;
}

}  // namespace orthrus::train
