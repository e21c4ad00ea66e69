#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/block_table.h"
#include "kernels/isa.h"
#include "kernels/output_reader.h"
#include "model/weights.h"

namespace orthrus {

/// The two views of an Orthrus model (paper, section 3): same embedding, norms, MLP and lm_head,
/// attention weights of their own, one KV cache.
enum class View : uint8_t { kAr, kDiffusion };

/// Stands for the mask in the tokens of a diffusion span (the mask token's row, or mask_embedding).
inline constexpr int32_t kMaskToken = -1;

/// Consecutive tokens of one sequence in a pass.
/// kAr: causal over the cache [0, first_position) and the span itself; writes keys and values at
/// [first_position, first_position + tokens.size()), for which the table must have capacity.
/// kDiffusion: `tokens` are the anchor, then kMaskToken; rows see the cache [0, first_position) and
/// all rows of the span, in both directions; nothing is written to the cache. It may start inside
/// the AR rows of the same sequence in the same pass: their keys are written before anyone attends.
struct Span {
  const BlockTable* table;
  View view;
  std::span<const int32_t> tokens;
  int64_t first_position;
  /// Rows of the span whose logits are wanted: [logits_begin, logits_end).
  int64_t logits_begin;
  int64_t logits_end;
  /// Of a diffusion span: logits of the whole vocabulary by the AR view's lm_head, where the model
  /// has another one for drafts.
  bool whole_logits = false;
  /// Takes these rows (0 for logits_begin's) while lm_head computes them; where there is one they
  /// are never written as a whole.
  OutputReader* reader = nullptr;

  bool drafts() const { return view == View::kDiffusion && !whole_logits; }
};

/// The cache layout of a model.
KvLayout kv_layout(const ModelConfig& config, KvType key_type, KvType value_type);

/// The logits of a pass, valid until the next one.
class Logits {
 public:
  explicit Logits(std::span<const std::span<const float>> spans) : spans_(spans) {}

  /// Rows [logits_begin, logits_end) of that span, row-major [rows, vocab_size]; of spans that
  /// draft [rows, draft_vocab()]. Empty where the span has a reader.
  std::span<const float> of(size_t span) const { return spans_[span]; }

 private:
  std::span<const std::span<const float>> spans_;
};

/// How large passes get.
struct PassLimits {
  int64_t rows = 0;
  int64_t logit_rows = 0;   ///< whose logits are wanted at once
  int64_t draft_spans = 0;  ///< diffusion spans at once, of at most block_size rows each
  int64_t tokens = 0;       ///< of a sequence
};

/// Runs passes. Holds the scratch memory for `max_rows` rows; a pass allocates nothing once warm.
/// One pass at a time (not thread-safe); it uses the threads of the context.
class Forward {
 public:
  /// max_tokens: the most that a sequence will have, so that attention's memory is there from the
  /// start; beyond it, it grows.
  Forward(const Model& model, const KvLayout& layout, ComputeContext context, int64_t max_rows,
          int64_t max_tokens = 0);
  ~Forward();

  /// Bytes of memory that a Forward comes to use when its passes get as large as that.
  static size_t memory_bytes(const ModelConfig& config, const KvLayout& layout, int threads,
                             const PassLimits& limits);

  const Model& model() const;
  const KvLayout& layout() const;
  int64_t max_rows() const;
  ComputeContext context() const;

  /// Every row is independent of the others bit for bit (docs/numerics.md). The rows of all spans
  /// together are at most max_rows. Does not change the tables: the caller commits with set_length.
  Logits run(std::span<const Span> spans);
  /// The same for one span: its logits.
  std::span<const float> run(const Span& span) { return run(std::span(&span, 1)).of(0); }

  /// For tests: coming passes copy the residual stream after `layer` (AR rows of all spans, then
  /// the diffusion rows; [rows, hidden]) to out. -1 ends it.
  void trace_layer(int64_t layer, float* out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
