#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf_builder.h"
#include "formats/model_config.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_names.h"
#include "formats/test_files.h"

namespace orthrus::testing {

/// A small model of random values that can be written in every form that the loader reads. All of
/// it is float32, so that the forms hold the same values to the bit.
struct RandomFiles {
  ModelConfig config;
  nlohmann::json rope_scaling;  ///< as in config.json; config.rope.divisors say the same
  /// By Hugging Face name, row-major; those of the diffusion view too.
  std::map<std::string, std::vector<float>> tensors;

  bool has_mask_embedding() const { return config.mask_token_id < 0; }
  bool scaled(const char* type) const {
    return !rope_scaling.is_null() && rope_scaling.at("rope_type") == type;
  }
};

/// Linear scaling: every frequency divided by `factor`.
inline void scale_linearly(RandomFiles& files, double factor) {
  files.rope_scaling = {{"rope_type", "linear"}, {"factor", factor}};
  files.config.rope.divisors.assign(static_cast<size_t>(files.config.head_dim / 2),
                                    static_cast<float>(factor));
}

/// Llama 3's scaling, as transformers computes it (modeling_rope_utils.py): short waves stay, long
/// ones are `factor` times as long, in between the frequencies are mixed.
inline void scale_as_llama3(RandomFiles& files, double factor, double low, double high,
                            double original_context) {
  files.rope_scaling = {{"rope_type", "llama3"},
                        {"factor", factor},
                        {"low_freq_factor", low},
                        {"high_freq_factor", high},
                        {"original_max_position_embeddings", original_context}};
  std::vector<float>& divisors = files.config.rope.divisors;
  divisors.clear();
  const auto head_dim = static_cast<double>(files.config.head_dim);
  for (int64_t i = 0; i < files.config.head_dim / 2; ++i) {
    const double frequency =
        std::pow(files.config.rope.theta, -2 * static_cast<double>(i) / head_dim);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double scaled = frequency;
    if (wavelength > original_context / low) {
      scaled = frequency / factor;
    } else if (wavelength >= original_context / high) {
      const double smooth = (original_context / wavelength - low) / (high - low);
      scaled = (1 - smooth) * frequency / factor + smooth * frequency;
    }
    divisors.push_back(static_cast<float>(frequency / scaled));
  }
}

/// YaRN, as transformers computes it: pairs that turn `fast` times or more over the original
/// context stay, those that turn `slow` times or less are `factor` times as slow, with a ramp
/// between.
inline void scale_as_yarn(RandomFiles& files, double factor, double fast, double slow,
                          int64_t original_context) {
  files.rope_scaling = {{"rope_type", "yarn"},
                        {"factor", factor},
                        {"beta_fast", fast},
                        {"beta_slow", slow},
                        {"original_max_position_embeddings", original_context}};
  RopeConfig& rope = files.config.rope;
  const auto head_dim = static_cast<double>(files.config.head_dim);
  const auto pair = [&](double turns) {
    const double wave = static_cast<double>(original_context) / (turns * 2 * std::numbers::pi);
    return head_dim * std::log(wave) / (2 * std::log(rope.theta));
  };
  const double low = std::floor(pair(fast)), high = std::ceil(pair(slow));
  rope.divisors.clear();
  for (int64_t i = 0; i < files.config.head_dim / 2; ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    rope.divisors.push_back(static_cast<float>(1 / (slowed / factor + (1 - slowed))));
  }
  rope.attention_factor = 0.1 * std::log(factor) + 1;
}

inline std::vector<TensorSpec> diffusion_specs(const RandomFiles& files) {
  std::vector<TensorSpec> specs = diffusion_tensors(files.config);
  if (files.has_mask_embedding()) {
    specs.push_back({std::string(kMaskEmbeddingName), {files.config.hidden_size}});
  }
  return specs;
}

/// Values such that each tensor matters: activations and logits of about 1, biases and norms far
/// from 0 and 1.
inline void fill(RandomFiles& files, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TensorSpec> specs = ar_tensors(files.config);
  for (TensorSpec& spec : diffusion_specs(files)) specs.push_back(std::move(spec));
  for (const TensorSpec& spec : specs) {
    const bool norm = spec.name.find("norm") != std::string::npos;
    const bool matrix = spec.shape.size() == 2 && spec.name != kEmbeddingName;
    const double width = matrix ? 1.5 / std::sqrt(static_cast<double>(spec.shape[1])) : 0.3;
    std::normal_distribution<double> values(norm ? 1 : 0, width);
    size_t count = 1;
    for (const int64_t size : spec.shape) count *= static_cast<size_t>(size);
    std::vector<float>& tensor = files.tensors[spec.name];
    for (size_t i = 0; i < count; ++i) tensor.push_back(static_cast<float>(values(random)));
  }
}

inline void write_safetensors(const RandomFiles& files, const std::vector<TensorSpec>& specs,
                              const std::map<std::string, std::string>& metadata,
                              const std::string& path) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorSpec& spec : specs) entries.push_back({spec.name, TensorType::kF32, spec.shape});
  SafetensorsWriter writer(path, entries, metadata);
  for (const TensorSpec& spec : specs) {
    writer.append(std::as_bytes(std::span(files.tensors.at(spec.name))));
  }
  writer.commit();
}

/// A Hugging Face directory; with `diffusion` an Orthrus checkpoint.
inline std::string write_hf(const RandomFiles& files, bool diffusion, const TempDir& dir) {
  const ModelConfig& c = files.config;
  nlohmann::json config = {{"model_type", architecture_name(c.architecture)},
                           {"vocab_size", c.vocab_size},
                           {"hidden_size", c.hidden_size},
                           {"intermediate_size", c.intermediate_size},
                           {"num_hidden_layers", c.num_layers},
                           {"num_attention_heads", c.num_heads},
                           {"num_key_value_heads", c.num_kv_heads},
                           {"head_dim", c.head_dim},
                           {"max_position_embeddings", c.max_position_embeddings},
                           {"rms_norm_eps", c.rms_norm_eps},
                           {"rope_theta", c.rope.theta},
                           {"rope_scaling", files.rope_scaling},
                           {"tie_word_embeddings", c.tie_word_embeddings}};
  if (c.architecture == Architecture::kLlama) {
    config["attention_bias"] = c.attention_bias;
    config["mlp_bias"] = c.mlp_bias;
  }
  std::vector<TensorSpec> specs = ar_tensors(c);
  if (diffusion) {
    config["block_size"] = c.block_size;
    config["mask_token_id"] = c.mask_token_id;
    for (TensorSpec& spec : diffusion_tensors(c)) specs.push_back(std::move(spec));
  }
  dir.write("config.json", config.dump());
  write_safetensors(files, specs, {}, dir.path() + "/model.safetensors");
  return dir.path();
}

inline std::string write_adapter(const RandomFiles& files, const TempDir& dir) {
  std::map<std::string, std::string> metadata = {
      {"block_size", std::to_string(files.config.block_size)}};
  if (!files.has_mask_embedding()) {
    metadata["mask_token_id"] = std::to_string(files.config.mask_token_id);
  }
  const std::string path = dir.path() + "/adapter.safetensors";
  write_safetensors(files, diffusion_specs(files), metadata, path);
  return path;
}

/// ggml's name of a tensor: "model.layers.1.mlp.up_proj.weight" -> "blk.1.ffn_up.weight".
inline std::string ggml_name(const std::string& hf_name) {
  static const std::map<std::string, std::string> kParts = {
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"self_attn.q_proj_diff", "attn_q_diff"},
      {"self_attn.k_proj_diff", "attn_k_diff"},
      {"self_attn.v_proj_diff", "attn_v_diff"},
      {"self_attn.o_proj_diff", "attn_output_diff"},
      {"self_attn.q_norm_diff", "attn_q_norm_diff"},
      {"self_attn.k_norm_diff", "attn_k_norm_diff"}};
  if (hf_name == kEmbeddingName) return "token_embd.weight";
  if (hf_name == kFinalNormName) return "output_norm.weight";
  if (hf_name == kLmHeadName) return "output.weight";
  const size_t layer = std::string("model.layers.").size();
  const size_t part = hf_name.find('.', layer) + 1;
  const size_t end = hf_name.rfind('.');
  return "blk." + hf_name.substr(layer, part - layer) +
         kParts.at(hf_name.substr(part, end - part)) + hf_name.substr(end);
}

/// Rows as llama-architecture files have them: a head's two halves become two sides of a reshape
/// [heads, 2, head_dim / 2, columns] whose middle axes are swapped, as llama.cpp's converter does.
inline std::vector<float> interleave_halves(const std::vector<float>& rows, int64_t head_dim,
                                            int64_t columns) {
  std::vector<float> out;
  const int64_t half = head_dim / 2;
  const auto heads = static_cast<int64_t>(rows.size()) / (head_dim * columns);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < half; ++i) {
      for (int64_t side = 0; side < 2; ++side) {
        const auto row = rows.begin() + (head * head_dim + side * half + i) * columns;
        out.insert(out.end(), row, row + columns);
      }
    }
  }
  return out;
}

inline void add_gguf_metadata(const RandomFiles& files, GgufBuilder& gguf) {
  const ModelConfig& c = files.config;
  const std::string arch = architecture_name(c.architecture);
  const auto u32 = [&](const char* key, int64_t value) {
    gguf.u32(arch + key, static_cast<uint32_t>(value));
  };
  gguf.text("general.architecture", arch);
  u32(".context_length", c.max_position_embeddings);
  u32(".embedding_length", c.hidden_size);
  u32(".feed_forward_length", c.intermediate_size);
  u32(".block_count", c.num_layers);
  u32(".attention.head_count", c.num_heads);
  u32(".attention.head_count_kv", c.num_kv_heads);
  u32(".attention.key_length", c.head_dim);
  u32(".attention.value_length", c.head_dim);
  u32(".rope.dimension_count", c.head_dim);
  gguf.f32(arch + ".rope.freq_base", static_cast<float>(c.rope.theta));
  gguf.f32(arch + ".attention.layer_norm_rms_epsilon", static_cast<float>(c.rms_norm_eps));
  if (files.scaled("linear")) {
    gguf.text(arch + ".rope.scaling.type", "linear");
    gguf.f32(arch + ".rope.scaling.factor", files.rope_scaling.at("factor").get<float>());
  }
  if (files.scaled("yarn")) {
    const auto number = [&](const char* key) { return files.rope_scaling.at(key).get<float>(); };
    gguf.text(arch + ".rope.scaling.type", "yarn");
    gguf.f32(arch + ".rope.scaling.factor", number("factor"));
    gguf.f32(arch + ".rope.scaling.yarn_beta_fast", number("beta_fast"));
    gguf.f32(arch + ".rope.scaling.yarn_beta_slow", number("beta_slow"));
    u32(".rope.scaling.original_context_length",
        files.rope_scaling.at("original_max_position_embeddings").get<int64_t>());
  }
}

/// A GGUF file; with `diffusion` the diffusion view is in it.
inline std::string write_gguf(const RandomFiles& files, bool diffusion, const TempDir& dir) {
  const ModelConfig& c = files.config;
  GgufBuilder gguf;
  add_gguf_metadata(files, gguf);
  std::vector<TensorSpec> specs = ar_tensors(c);
  if (diffusion) {
    gguf.u32("orthrus.block_size", static_cast<uint32_t>(c.block_size));
    gguf.u32("orthrus.mask_token_id", static_cast<uint32_t>(c.mask_token_id));
    for (TensorSpec& spec : diffusion_tensors(c)) specs.push_back(std::move(spec));
  }
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& sizes,
                       const std::vector<float>& values) {
    gguf.tensor(name, GgufBuilder::kF32, sizes,
                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  };
  for (const TensorSpec& spec : specs) {
    std::vector<float> values = files.tensors.at(spec.name);
    const bool rotated = spec.name.find(".q_proj") != std::string::npos ||
                         spec.name.find(".k_proj") != std::string::npos;
    if (rotated && c.architecture == Architecture::kLlama) {
      values = interleave_halves(values, c.head_dim, spec.shape.size() == 2 ? spec.shape[1] : 1);
    }
    add(ggml_name(spec.name), {spec.shape.rbegin(), spec.shape.rend()}, values);
  }
  if (files.scaled("llama3")) {
    add("rope_freqs.weight", {static_cast<uint64_t>(c.head_dim / 2)}, c.rope.divisors);
  }
  return dir.write("model.gguf", gguf.build());
}

}  // namespace orthrus::testing
