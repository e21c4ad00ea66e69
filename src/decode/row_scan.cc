#include "decode/row_scan.h"

#include "base/error.h"

namespace orthrus {

void RowScan::expect(int64_t rows, const NoiseKey& first) {
  ORTHRUS_CHECK(rows <= most_rows_);
  rows_ = rows;
  first_ = first;
}

void RowScan::begin(int threads) {
  parts_.clear();
  parts_.reserve(static_cast<size_t>(threads * most_rows_));
  for (int thread = 0; thread < threads; ++thread) {
    NoiseKey noise = first_;
    for (int64_t row = 0; row < rows_; ++row, ++noise.position) {
      parts_.push_back({RowMaximum(draw_, noise)});
    }
  }
}

void RowScan::read(int thread, int64_t row, int64_t first, std::span<const float> values) {
  const auto index = static_cast<size_t>(thread * rows_ + row);
  parts_[index].best.add(values.data(), first, static_cast<int64_t>(values.size()));
}

std::optional<int32_t> RowScan::token(int64_t row) const {
  RowMaximum best;
  for (auto at = static_cast<size_t>(row); at < parts_.size(); at += static_cast<size_t>(rows_)) {
    best.add(parts_[at].best);
  }
  return best.token();
}

}  // namespace orthrus
