#pragma once

#include <array>
#include <cstdint>

#include "kernels/isa.h"
#include "model/weights.h"

namespace orthrus {

/// What a pass costs on this machine: bytes per second, operations per second (measured once per
/// machine, see kernels/probe.h).
struct MachineRates {
  double bytes_per_second = 0;
  double f32_flops = 0;
  double int8_ops = 0;
};

/// Predicts the seconds of a pass from bytes and operations (max of the two, per kind of weight), and
/// learns a correction per row count from every real pass. Not thread-safe.
class CostModel {
 public:
  CostModel(const Model& model, const KvLayout& layout, MachineRates rates);

  /// Seconds of a pass with `ar_rows` + `diffusion_rows` rows of which `logit_rows` want logits, attending
  /// `context_tokens` keys in all (the sum over the sequences, each counted once).
  struct PassShape {
    int64_t ar_rows = 0;
    int64_t diffusion_rows = 0;
    int64_t logit_rows = 0;
    int64_t context_tokens = 0;
  };
  double predict(const PassShape& shape) const;
  void observe(const PassShape& shape, double seconds);
};

}  // namespace orthrus
