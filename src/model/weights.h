#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "kernels/packed_matrix.h"
#include "model/packed_cache.h"

namespace orthrus {

/// Rows of a full draft block of the untrained view that --adapter copy makes.
inline constexpr int64_t kCopyBlockSize = 32;

/// The attention weights of one view in one layer; names as in Hugging Face checkpoints.
struct AttentionWeights {
  PackedMatrix q_proj;                        // [heads * head_dim, hidden]
  PackedMatrix k_proj;                        // [kv_heads * head_dim, hidden]
  PackedMatrix v_proj;                        // [kv_heads * head_dim, hidden]
  PackedMatrix o_proj;                        // [hidden, heads * head_dim]
  std::vector<float> q_norm, k_norm;          // [head_dim] or empty
  std::vector<float> q_bias, k_bias, v_bias;  // [outputs] or empty
  std::vector<float> o_bias;                  // [hidden] or empty
};

/// The MLP of one layer. Both views compute the same function; see Model for twins.
struct MlpWeights {
  PackedMatrix gate_proj, up_proj;                   // [intermediate, hidden]
  PackedMatrix down_proj;                            // [hidden, intermediate]
  std::vector<float> gate_bias, up_bias, down_bias;  // [outputs] or empty
};

struct LayerWeights {
  std::vector<float> input_norm;  // [hidden]
  AttentionWeights ar;
  std::optional<AttentionWeights> diff;    // the diffusion view, where the model has one
  std::vector<float> post_attention_norm;  // [hidden]
  MlpWeights mlp;
  std::optional<MlpWeights> draft_mlp;  // the diffusion view's twin (matrices alone), if any
};

/// A model ready to run. Immutable after load_model; shared by any number of Forwards.
///
/// The views share MLP and lm_head, but the diffusion view may read twins of them in fewer bits
/// (--draft-weights): its rows are drafts, which the AR view judges, so that nothing but the number
/// of accepted drafts depends on their precision. A matrix that has few bits already is its own
/// twin and takes no memory twice.
struct Model {
  ModelConfig config;    ///< block_size and mask of the adapter where one was given
  PackedMatrix lm_head;  // [vocab, hidden]; also the embedding where tied
  std::optional<PackedMatrix> draft_lm_head;  // the diffusion view's: a twin, or fewer rows
  std::optional<PackedMatrix> embedding;      // [vocab, hidden] where not tied
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;      // [hidden]
  std::vector<float> mask_embedding;  // [hidden] or empty: then config.mask_token_id's row
  std::vector<float> rope_inv_freq;   // [head_dim / 2]
  bool mapped = false;  ///< matrices lie in a mapped file: the system counts them as free memory

  bool has_diffusion() const { return !layers.empty() && layers.front().diff.has_value(); }
  const PackedMatrix& embedding_matrix() const { return embedding ? *embedding : lm_head; }
  /// Rows of the diffusion view's logits: it never drafts a token from there on.
  int64_t draft_vocab() const { return draft_lm_head ? draft_lm_head->rows() : config.vocab_size; }
  size_t weight_bytes() const;     ///< all, diffusion included
  size_t diffusion_bytes() const;  ///< the `_diff` weights and the twins
};

struct LoadRequest {
  WeightFormat format = WeightFormat::kAuto;
  /// Of what only drafting reads: the `_diff` weights and the twins (kQ8 or kQ4; unset: the
  /// format of the model, no twins).
  std::optional<WeightFormat> draft_format;
  /// The diffusion weights: from the checkpoint itself, an adapter, copies of the AR weights, or
  /// none.
  enum class Diffusion : uint8_t {
    kCheckpoint,
    kAdapter,
    kCopy,
    kNone
  } diffusion = Diffusion::kNone;
  const Adapter* adapter = nullptr;  ///< for kAdapter
  /// What an earlier load of the same request had: taken from here, and nothing from the files.
  const LoadedTensors* loaded = nullptr;
  LoadedTensors* record = nullptr;  ///< gets all that is loaded
  /// Called with the share done, 0 to 1; from the loading thread.
  std::function<void(double)> progress;
};

/// Packs the weights of `checkpoint`, dropping source pages as it goes on. Diffusion weights are
/// packed in the runtime format too (q8 for int8 adapters under kAuto). kCopy: `_diff` = AR
/// weights, block_size 32, mask embedding = the mean of all embedding rows (no training, no spare
/// vocabulary row needed).
Model load_model(const Checkpoint& checkpoint, const LoadRequest& request, ThreadPool& pool);

/// A model of that shape with random weights (fixed seed) in that format, for bench. draft_format:
/// see LoadRequest.
Model random_model(const ModelConfig& config, WeightFormat format, ThreadPool& pool,
                   std::optional<WeightFormat> draft_format = std::nullopt);

}  // namespace orthrus
