#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/tensor_type.h"

namespace orthrus {

/// The Hugging Face name of a ggml tensor name, e.g. "blk.3.attn_q.weight" ->
/// "model.layers.3.self_attn.q_proj.weight"; diffusion tensors are named "blk.3.attn_q_diff.weight"
/// and "blk.3.attn_q_norm_diff.weight", the mask embedding "mask_embd.weight". Other names come
/// back as they are.
std::string hf_tensor_name(std::string_view ggml_name);

/// The ggml name of a Hugging Face name: hf_tensor_name() the other way round.
std::string ggml_tensor_name(std::string_view hf_name);

/// Whether a llama-architecture GGUF file interleaves that tensor's rows for ggml's rotary
/// embedding, by its Hugging Face name: q and k, weight and bias, of both views.
enum class RotaryRows : uint8_t { kNone, kQuery, kKey };
RotaryRows rotary_rows(std::string_view hf_name);

/// The element type of ggml's type number, if it is one we read.
std::optional<TensorType> tensor_type_from_ggml(uint32_t type);

/// ggml's type number of a type that GGUF files can hold (not kI8).
uint32_t ggml_type_number(TensorType type);

/// ggml's name of a type number, "type 77" where it is not known.
std::string ggml_type_name(uint32_t type);

}  // namespace orthrus
