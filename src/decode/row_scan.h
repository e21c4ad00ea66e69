#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decode/row_maximum.h"
#include "kernels/output_reader.h"

namespace orthrus {

/// Draws tokens of rows of logits while lm_head computes them, so that no row is ever written as a
/// whole: each thread keeps the best of what it has seen.
class RowScan : public OutputReader {
 public:
  /// Of a request; at most `most_rows` rows at once.
  RowScan(const RowDraw& draw, int64_t most_rows) : draw_(draw), most_rows_(most_rows) {}

  /// The coming pass has `rows` rows; the noise of the first is that of `first`, the others have
  /// the positions after it.
  void expect(int64_t rows, const NoiseKey& first);
  /// What a row drew; as Sampler::choose.
  std::optional<int32_t> token(int64_t row) const;

  void begin(int threads) override;
  void read(int thread, int64_t row, int64_t first, std::span<const float> values) override;

 private:
  /// A cache line of its own: threads write theirs at the same time.
  struct alignas(64) Part {
    RowMaximum best;
  };

  RowDraw draw_;
  int64_t most_rows_;
  int64_t rows_ = 0;
  NoiseKey first_;
  std::vector<Part> parts_;  // [threads, rows_]
};

/// A row of a pass: its logits, or what a scan drew of them.
struct LogitsRow {
  std::span<const float> logits;
  const RowScan* scan = nullptr;  ///< instead of logits
  int64_t index = 0;              ///< of the row in the scan
};

}  // namespace orthrus
