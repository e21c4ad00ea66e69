#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/shard.h"
#include "trainer/model/dual_model.h"

namespace orthrus::train {

/// Blocks that are drafted in one pass.
inline constexpr int64_t kSimulatedBlocks = 64;

/// How the diffusion view would draft over answers that the frozen model has written.
struct Simulation {
  int64_t documents = 0;
  int64_t cycles = 0;
  int64_t accepted = 0;
  std::vector<double> per_document;   ///< tokens per cycle of each
  std::vector<int64_t> agreed, rows;  ///< a block position, over all anchors

  double tokens_per_cycle() const;  ///< token-weighted: (accepted + cycles) / cycles
  double mean() const;              ///< of the documents' own
};

/// Runs the two-pass cycles of greedy decoding (paper, section 3) over the answers, teacher-forced:
/// exact where the answers are the model's own greedy ones, since then the text is the same at any
/// draft. Counts as `orthrus eval` does: the first token of an answer belongs to the prefill.
Simulation simulate_cycles(const DualModel& model, const std::vector<Document>& documents,
                           int64_t block_size);

}  // namespace orthrus::train
