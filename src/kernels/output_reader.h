#pragma once

#include <cstdint>
#include <span>

namespace orthrus {

/// Takes the outputs of a product while they are computed, where nobody wants them as a matrix.
class OutputReader {
 public:
  virtual ~OutputReader() = default;
  /// Before the first read() of a product, in the caller's thread.
  virtual void begin(int threads) = 0;
  /// values: the outputs from `first` (a multiple of 16) on of a row of the task. Every output
  /// comes once; threads [0, threads) call at the same time.
  virtual void read(int thread, int64_t row, int64_t first, std::span<const float> values) = 0;
};

}  // namespace orthrus
