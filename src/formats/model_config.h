#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orthrus {

enum class Architecture : uint8_t { kLlama, kQwen2, kQwen3 };

/// As GGUF files name it.
constexpr const char* architecture_name(Architecture architecture) {
  if (architecture == Architecture::kQwen3) return "qwen3";
  return architecture == Architecture::kQwen2 ? "qwen2" : "llama";
}

/// What a model says of YaRN (Peng et al. 2023), which stretches its context by `factor`.
struct YarnScaling {
  double factor = 1;
  int64_t original_context = 0;  ///< tokens
  double beta_fast = 32;  ///< turns over the original context from which a pair is left as it is
  double beta_slow = 1;   ///< turns up to which a pair is slowed by all of `factor`
  bool truncate = true;   ///< the two borders are rounded outwards to whole pairs
};

/// Rotary embedding: angle of pair i at position p is p * theta^(-2i/head_dim), divided by a factor
/// a pair where the model scales its context.
struct RopeConfig {
  double theta = 10000.0;
  /// Frequency divisors, one a pair [head_dim / 2]; empty: all 1. Llama 3's `rope_scaling` (or a
  /// GGUF file's rope_freqs.weight), linear scaling and YaRN are turned into this by the loader.
  std::vector<float> divisors;
  double attention_factor = 1;      ///< of cosines and sines: YaRN's temperature
  std::optional<YarnScaling> yarn;  ///< where it is the source of the divisors
};

/// Everything about a model that is not a weight, from config.json or GGUF metadata.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::string name;        ///< for people: general.name or the directory
  int64_t vocab_size = 0;  ///< rows of the embedding, padding included
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool qk_norm = false;         ///< Qwen3: RMS norm of each q and k head before the rotation
  bool attention_bias = false;  ///< Qwen2: biases of q, k and v
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool tie_word_embeddings = false;

  // The diffusion view of a full Orthrus checkpoint; an adapter brings its own.
  bool is_orthrus = false;
  int64_t block_size = 0;      ///< rows of a full draft block, the anchor included
  int64_t mask_token_id = -1;  ///< -1: the mask is a tensor, kMaskEmbeddingName

  /// base_hash() of the model that `orthrus quantize` made this of; empty where it did not.
  std::string quantized_from;

  std::vector<int32_t>
      eos_token_ids;  ///< generation_config.json's where it has any, else config.json's
  int32_t bos_token_id = -1;

  /// Sampling defaults of generation_config.json (do_sample true), for people who set nothing.
  struct SamplingDefaults {
    std::optional<double> temperature, top_p, min_p, repetition_penalty;
    std::optional<int64_t> top_k;
    bool do_sample = false;
  } sampling;
};

}  // namespace orthrus
