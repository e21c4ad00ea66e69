#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "decode/acceptance.h"
#include "kernels/attention.h"
#include "model/forward.h"
#include "model/weights.h"

namespace orthrus {

/// What this machine can do at best (measured once per machine).
struct MachineRates {
  double bytes_per_second = 0;
  double f32_flops = 0;
  double int8_ops = 0;
  double bf16_flops = 0;  ///< of products with bf16 weights
};

/// Bytes and multiply-adds of one part of a model's weights.
struct WeightCost {
  double bytes = 0;      ///< read once a pass, whatever the number of rows
  double f32_macs = 0;   ///< a row, in float arithmetic
  double int8_macs = 0;  ///< a row, in integer arithmetic
  double bf16_macs = 0;  ///< a row, with bf16 weights

  /// Adds a matrix of that packed form.
  void add(TensorType form, double packed_bytes, double macs);
};

/// A model as the cost model sees it.
struct ModelCost {
  WeightCost shared;     ///< what both views read: MLP of all layers, but for what has a twin
  WeightCost ar;         ///< what the AR view alone reads
  WeightCost diffusion;  ///< what the diffusion view alone reads, twins included
  WeightCost lm_head;
  std::optional<WeightCost> draft_lm_head;  ///< the diffusion view's, where it has one of its own
  double kv_bytes_per_token = 0;
  double attention_macs = 0;    ///< of one row and one key it attends to, all layers and heads
  bool attention_bf16 = false;  ///< of bf16, as keys and values are

  static ModelCost of(const Model& model, const KvLayout& layout);
};

/// What a pass has to do.
struct PassShape {
  int64_t ar_rows = 0;
  int64_t diffusion_rows = 0;
  int64_t logit_rows = 0;        ///< rows that want logits,
  int64_t draft_logit_rows = 0;  ///< and those that draft among them
  int64_t context_tokens = 0;    ///< keys read: of each sequence once
  int64_t attended = 0;          ///< keys attended to: of each row all

  /// Adds a span of `rows` rows behind `position` tokens, of `sequences` sequences alike.
  void add(View view, int64_t rows, int64_t logit_rows, int64_t position, int64_t sequences = 1);
  void add(const Span& span);
};

/// Predicts the seconds of a pass and learns from every real one. The prediction is analytic (per
/// part of the weights, and for keys and values, reading and computing, which overlap: the root of
/// the sum of their squares, close to the longer one where they differ) times a correction
/// learned per kind of pass and row count. The memory of a shared machine is faster at one time
/// than at another, so the time of reading follows every pass: what is seen of plain steps also
/// holds for drafts, which may not have run for long. Not thread-safe; one a machine and model,
/// shared by its decoders.
class CostModel {
 public:
  CostModel(const Model& model, const KvLayout& layout, MachineRates rates)
      : CostModel(ModelCost::of(model, layout), rates) {}
  CostModel(const ModelCost& model, MachineRates rates) : model_(model), rates_(rates) {}

  double predict(const PassShape& shape) const;
  /// A real pass. Outliers (another program took the cores) move the correction by a bounded step.
  void observe(const PassShape& shape, double seconds);
  /// Real passes seen of this kind and about this number of rows.
  int64_t observations(const PassShape& shape) const;
  /// What drafts were worth in the requests so far whose temperature was like this one: where a new
  /// request starts from. (The hotter, the less the draft can foresee.)
  AcceptanceProfile& acceptance(double temperature);
  /// What requests may together still lose by trying drafts that the estimate advises against: see
  /// DraftLength.
  struct Allowance {
    double seconds = 0;
    double probe_price = 1;  ///< times a probe's possible loss that must be there before it
  };
  Allowance& allowance() { return allowance_; }

 private:
  enum Kind { kAr, kDiffusion, kMixed, kKinds };
  /// 1 to 8 rows have a bucket each, then four buckets an octave up to 1024 rows.
  static constexpr int kBuckets = 8 + 4 * 7;
  struct Correction {
    double factor = 1;
    int64_t count = 0;
  };
  static Kind kind_of(const PassShape& shape);
  static int bucket_of(int64_t rows);
  struct Estimate {
    double seconds = 0;
    double memory_seconds = 0;  ///< what the estimate grows by, for memory slower by a small share
    void add(double reading, double computing);
  };
  Estimate analytic(const PassShape& shape) const;
  /// The learned factor of the nearest row count seen, of this kind if any, else of any kind.
  double correction(Kind kind, int bucket) const;

  ModelCost model_;
  MachineRates rates_;
  /// Greedy, up to 0.5, up to 1, above; half-life 350 cycles.
  std::array<AcceptanceProfile, 4> acceptance_{AcceptanceProfile(0.998), AcceptanceProfile(0.998),
                                               AcceptanceProfile(0.998), AcceptanceProfile(0.998)};
  Allowance allowance_;
  double memory_slowdown_ = 1;  // against rates_.bytes_per_second
  std::array<std::array<Correction, kBuckets>, kKinds> corrections_{};
};

}  // namespace orthrus
