#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "formats/model_config.h"
#include "formats/tensor_source.h"

namespace orthrus {

/// A model as found on disk: a Hugging Face directory or a GGUF file. Opening checks the config and
/// the tensor table, never loads weights.
struct Checkpoint {
  std::string path;
  ModelConfig config;
  std::unique_ptr<TensorSource> tensors;
};

/// How names of files with packed weights end (model/packed_cache.h); they are no models.
inline constexpr std::string_view kPackedCacheSuffix = ".packed";

/// Opens a directory with config.json, or a .gguf file. Error(kInput) in one line otherwise.
Checkpoint open_checkpoint(const std::string& path);

/// A hash of the base model, stored in adapters: 64 hex digits, SHA-256 over the names, types,
/// shapes and a fixed sample of the bytes (first and last 4 KiB) of every tensor that is not a
/// `_diff` one, in order of name. The same weights in another container or type give another hash.
std::string base_hash(const TensorSource& tensors);

/// Whether `hash` is the base_hash of this model, or of the one that it was quantised from.
bool is_base(const Checkpoint& checkpoint, const std::string& hash);

}  // namespace orthrus
