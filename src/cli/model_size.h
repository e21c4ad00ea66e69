#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/options.h"
#include "engine/diffusion_source.h"
#include "formats/checkpoint.h"
#include "kernels/attention.h"

namespace orthrus {

/// A model's files, opened but not loaded: the base and its diffusion weights.
struct OpenedModel {
  Checkpoint checkpoint;
  DiffusionSource diffusion;

  /// Rows of a full draft block, the anchor included; 1 without a diffusion view.
  int64_t block_size() const;
  bool has_diffusion() const { return diffusion.kind != LoadRequest::Diffusion::kNone; }
  /// "its own files", "copies of the AR weights", the adapter's path, or "none".
  std::string diffusion_source() const;
};

OpenedModel open_model_files(const ModelFlags& flags);

/// Tensors of one file type.
struct TypeShare {
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t file_bytes = 0;
  int64_t runtime_bytes = 0;  ///< as packed for the kernels
};

struct ModelSize {
  std::map<std::string, TypeShare> types;  ///< by the name of the file's type
  int64_t parameters = 0;                  ///< of both views; a tied lm_head once
  int64_t diffusion_parameters = 0;
  int64_t runtime_bytes = 0;
  int64_t diffusion_runtime_bytes = 0;
};

/// Sizes of all that a load with those flags would hold, the twins of `--draft-weights` counted to
/// the diffusion view.
ModelSize measure_model(const OpenedModel& model, const ModelFlags& flags);

/// The KV cache that the flags ask for.
KvLayout kv_layout(const ModelConfig& config, const ModelFlags& flags);

/// 2 x layers x KV heads x head_dim x bytes of the type (keys and values may differ).
int64_t kv_bytes_per_token(const KvLayout& layout);

/// Bytes of the whole blocks that `tokens` tokens of one sequence take.
int64_t kv_bytes(const KvLayout& layout, int64_t tokens);

/// `-c` as a number of tokens: 0 is the model's limit, which also bounds it.
int64_t context_tokens(const ModelConfig& config, const ModelFlags& flags);

/// Most bytes that the program needs besides weights and KV cache, with `batch` sequences at once:
/// passes as Forward says, logits of all draft blocks once more where the consensus keeps them,
/// samplers; and what this process itself takes with the model's tokenizer loaded.
int64_t working_bytes(const OpenedModel& model, const ModelFlags& flags, int64_t batch,
                      Consensus consensus);

}  // namespace orthrus
