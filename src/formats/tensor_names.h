#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_config.h"
#include "formats/tensor_source.h"

namespace orthrus {

inline constexpr std::string_view kEmbeddingName = "model.embed_tokens.weight";  // [vocab, hidden]
inline constexpr std::string_view kFinalNormName = "model.norm.weight";          // [hidden]
inline constexpr std::string_view kLmHeadName = "lm_head.weight";                // [vocab, hidden]
inline constexpr std::string_view kRopeFactorsName = "rope_freqs.weight";  // GGUF: [head_dim / 2]
inline constexpr std::string_view kMaskEmbeddingName = "mask_embedding";  // adapter, GGUF: [hidden]
inline constexpr std::string_view kScaleSuffix = "_scale";  // int8 adapter: F32 [outputs]

/// "model.layers.N.<part>", e.g. layer_tensor(3, "mlp.up_proj.weight").
std::string layer_tensor(int64_t layer, std::string_view part);

/// A tensor a model must have. Shapes in Hugging Face order.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
};

/// The AR view with all it shares: embedding, lm_head unless tied, norms, MLP, attention.
std::vector<TensorSpec> ar_tensors(const ModelConfig& config);

/// The diffusion view: q, k, v, o `_proj_diff` of every layer, and q, k `_norm_diff` where the
/// model has such norms. Biases are those of the AR view.
std::vector<TensorSpec> diffusion_tensors(const ModelConfig& config);

/// Those of ar_tensors() that the diffusion view reads too and may have twins of in fewer bits:
/// MLP and lm_head.
std::vector<TensorSpec> twinned_tensors(const ModelConfig& config);

/// Whether that name belongs to the diffusion view, its mask embedding included.
bool is_diffusion_tensor(std::string_view name);

/// Error(kInput) that names the first of `specs` that is missing, of another shape, or of a type
/// that cannot be used: vectors must be F32, F16 or BF16; I8 is for adapters (`allow_i8`) only.
void check_tensors(const TensorSource& tensors, const std::vector<TensorSpec>& specs,
                   bool allow_i8 = false);

}  // namespace orthrus
