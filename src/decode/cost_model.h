#pragma once

#include <array>
#include <cstdint>

#include "decode/acceptance.h"
#include "kernels/attention.h"
#include "model/weights.h"

namespace orthrus {

/// What this machine can do at best (measured once per machine).
struct MachineRates {
  double bytes_per_second = 0;
  double f32_flops = 0;
  double int8_ops = 0;
};

/// Bytes and multiply-adds of one part of a model's weights.
struct WeightCost {
  double bytes = 0;      ///< read once a pass, whatever the number of rows
  double f32_macs = 0;   ///< a row, in float arithmetic
  double int8_macs = 0;  ///< a row, in integer arithmetic
};

/// A model as the cost model sees it.
struct ModelCost {
  WeightCost shared;     ///< MLP of all layers
  WeightCost ar;         ///< attention projections of the AR view
  WeightCost diffusion;  ///< those of the diffusion view
  WeightCost lm_head;
  double kv_bytes_per_token = 0;

  static ModelCost of(const Model& model, const KvLayout& layout);
};

/// A pass with `ar_rows` + `diffusion_rows` rows of which `logit_rows` want logits, attending
/// `context_tokens` keys in all (the sum over the sequences, each counted once).
struct PassShape {
  int64_t ar_rows = 0;
  int64_t diffusion_rows = 0;
  int64_t logit_rows = 0;
  int64_t context_tokens = 0;
};

/// Predicts the seconds of a pass and learns from every real one. The prediction is analytic (per
/// part of the weights the longer of reading and computing, plus reading keys and values) times a
/// correction learned per kind of pass and row count. Not thread-safe; one a machine and model,
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
  /// What drafts were worth in the requests so far: where a new request starts from.
  AcceptanceProfile& acceptance() { return acceptance_; }

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
  double analytic(const PassShape& shape) const;
  double weight_seconds(const WeightCost& cost, int64_t rows) const;
  /// The learned factor of the nearest row count seen, of this kind if any, else of any kind.
  double correction(Kind kind, int bucket) const;

  ModelCost model_;
  MachineRates rates_;
  AcceptanceProfile acceptance_{0.998};  // half-life 350 cycles
  std::array<std::array<Correction, kBuckets>, kKinds> corrections_{};
};

}  // namespace orthrus
