#pragma once

#include <cstdint>
#include <vector>

#include "cache/block_table.h"
#include "decode/cost_model.h"
#include "kernels/matmul.h"
#include "model/forward.h"

namespace orthrus {

/// What a pass must read and compute at least.
struct PassWork {
  double bytes = 0;
  double f32_ops = 0;   ///< two a multiply-add
  double int8_ops = 0;  ///< two a multiply-add
  double bf16_ops = 0;

  double ops() const { return f32_ops + int8_ops + bf16_ops; }
};

/// The matrix products of one pass through the AR view, lm_head for every row included, and
/// nothing else. For group formats that includes quantising the activations.
class MatmulPass {
 public:
  MatmulPass(const Model& model, ComputeContext context, int64_t max_rows);
  void run(int64_t rows);

 private:
  void product(std::initializer_list<const PackedMatrix*> weights, int64_t rows);

  const Model& model_;
  ComputeContext context_;
  std::vector<float> x_;    // [max_rows, largest cols]
  std::vector<float> out_;  // [max_rows, outputs of the largest product]
  Activations activations_;
};

/// A model with one sequence whose KV cache holds `capacity` tokens of made-up keys and values:
/// passes of any kind at any context, at the cost that they have in a real generation.
class BenchSequence {
 public:
  BenchSequence(const Model& model, ComputeContext context, KvType kv_type, int64_t capacity,
                int64_t max_rows);

  /// `rows` rows of the AR view at `first_position`; logits of the last `logit_rows`.
  void ar_pass(int64_t rows, int64_t first_position, int64_t logit_rows);
  /// A diffusion block anchored there; logits of all its rows but the last.
  void diffusion_pass(int64_t rows, int64_t anchor_position);
  /// Seconds of a whole cycle of DecodeLoop with blocks of `block` rows behind `context` tokens, as
  /// a greedy request runs it.
  double cycle_seconds(int64_t block, int64_t context);
  /// Attention alone: `rows` rows in every layer, the first over `context_tokens` keys, each later
  /// one over one more.
  void attention_pass(int64_t rows, int64_t context_tokens);

  const KvLayout& layout() const { return pool_.layout(); }
  Isa isa() const { return context_.isa; }
  BlockTable& table() { return table_; }
  Forward& forward() { return forward_; }

 private:
  void fill_cache();

  const Model& model_;
  ComputeContext context_;
  BlockPool pool_;
  BlockTable table_;
  Forward forward_;
  AttentionWorkspace workspace_;
  CostModel cost_;
  std::vector<int32_t> tokens_;          // of AR passes
  std::vector<int32_t> draft_tokens_;    // an anchor, then masks
  std::vector<float> query_, attended_;  // [max_rows, heads * head_dim]
  std::vector<AttentionRow> attention_rows_;
};

/// Work of one pass of `rows` rows (each attends all keys before it and, in a diffusion block, all
/// of the block) whose last `logit_rows` want logits.
PassWork pass_work(const Model& model, const KvLayout& layout, View view, int64_t rows,
                   int64_t first_position, int64_t logit_rows);

/// Work of the AR view's matrix products alone, lm_head for every row included.
PassWork matmul_work(const Model& model, int64_t rows);

/// Work of attention alone, as BenchSequence::attention_pass does it.
PassWork attention_work(const Model& model, const KvLayout& layout, int64_t rows,
                        int64_t context_tokens);

}  // namespace orthrus
