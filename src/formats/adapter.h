#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/tensor_source.h"

namespace orthrus {

/// The diffusion weights of a base model, alone:
/// `model.layers.N.self_attn.{q,k,v,o}_proj_diff.weight`,
/// `{q,k}_norm_diff.weight`, all in Hugging Face row order, and the mask as `mask_embedding`
/// [hidden] or a token id. In the safetensors file: type BF16, F16 or F32, or I8 with a tensor
/// `<name>_scale` F32 [outputs] (weight = i8 * scale of its row). Described in docs/formats.md.
struct Adapter {
  std::string path;
  std::unique_ptr<TensorSource> tensors;
  int64_t block_size = 0;
  int64_t mask_token_id = -1;                   ///< -1 where `mask_embedding` is present
  std::string base_hash;                        ///< empty where the file names none
  std::string method;                           ///< "orthrus"
  std::map<std::string, std::string> metadata;  ///< everything else, e.g. training facts
};

/// Opens a safetensors file, an index of several, or a directory that holds
/// adapter.safetensors.index.json or adapter.safetensors. Checks names, shapes and completeness
/// against `base`: the first wrong or missing tensor is named.
Adapter open_adapter(const std::string& path, const ModelConfig& base);

/// The index or the file that open_adapter would take in that directory; empty where there is none.
std::string adapter_in(const std::string& directory);

enum class AdapterType { kBf16, kInt8 };

/// Writes `adapter` as one safetensors file, atomically (a temporary file, then rename). int8: per
/// row scale = max|w| / 127, round to nearest even; norms and the mask embedding stay as they are.
void write_adapter(const Adapter& adapter, AdapterType type, const std::string& path);

/// The same in parts of at most part_bytes bytes (more where a single tensor has more), in a
/// directory that is made where it is missing: adapter-00001-of-00002.safetensors and so on, and
/// adapter.safetensors.index.json, written last.
void write_adapter_parts(const Adapter& adapter, AdapterType type, const std::string& directory,
                         uint64_t part_bytes);

}  // namespace orthrus
