#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/matmul.h"

namespace orthrus {

/// Puts what it reads together to the matrix [rows, outputs] that would have been written.
class OutputCollector : public OutputReader {
 public:
  explicit OutputCollector(int64_t outputs) : outputs_(outputs) {}

  void begin(int threads) override {
    threads_ = threads;
    out.clear();
    times_.clear();
  }
  void read(int thread, int64_t row, int64_t first, std::span<const float> values) override {
    ORTHRUS_CHECK(thread >= 0 && thread < threads_ && first % 16 == 0);
    const std::scoped_lock lock(mutex_);
    const auto rows_end = static_cast<size_t>((row + 1) * outputs_);
    if (out.size() < rows_end) {
      out.resize(rows_end);
      times_.resize(rows_end);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t at = static_cast<size_t>(row * outputs_ + first) + i;
      out[at] = values[i];
      ++times_[at];
    }
  }
  /// Whether every output of every row came once.
  bool complete() const {
    return std::all_of(times_.begin(), times_.end(), [](uint8_t times) { return times == 1; });
  }

  std::vector<float> out;

 private:
  int64_t outputs_;
  int threads_ = 0;
  std::mutex mutex_;
  std::vector<uint8_t> times_;
};

}  // namespace orthrus
