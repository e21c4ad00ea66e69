#pragma once

#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "formats/model_config.h"

namespace orthrus {

/// config.json, and generation_config.json where there is one, of a Hugging Face directory.
struct HfConfigFiles {
  std::string directory;        ///< for messages and the model's name
  std::string_view config;      ///< text of config.json
  std::string_view generation;  ///< text of generation_config.json; empty: none
  /// Whether lm_head.weight is stored: decides where config.json does not say if it is tied.
  bool has_lm_head = true;
};

/// Reads Qwen3 (and Orthrus: model_type "qwen3" or "orthrus", architecture OrthrusLM), Qwen2 and
/// Llama configurations. Everything is range-checked; what would change the computation and is not
/// supported (rope scaling other than linear and llama3, sliding windows, other activations) is
/// an Error(kInput) that names the key.
ModelConfig parse_hf_config(const HfConfigFiles& files);

/// The same from GGUF metadata and the tensor table, architectures llama, qwen2 and qwen3. A file
/// with diffusion tensors says `orthrus.block_size` and `orthrus.mask_token_id`.
ModelConfig parse_gguf_config(const GgufFile& file);

/// Bounds and divisibility of sizes, shared by both. `where` is for messages.
void check_model_config(const ModelConfig& config, const std::string& where);

/// Rows of a full draft block at most, the anchor included. Published models have 32.
inline constexpr int64_t kMaxBlockSize = 1024;

/// Bounds of what a diffusion view adds, in a checkpoint or an adapter.
void check_diffusion_config(int64_t block_size, int64_t mask_token_id, int64_t vocab_size,
                            const std::string& where);

}  // namespace orthrus
