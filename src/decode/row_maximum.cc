#include "decode/row_maximum.h"

#include <algorithm>
#include <cmath>

namespace orthrus {

void RowMaximum::add(const float* x, int64_t first, int64_t count, int64_t largest) {
  constexpr int64_t kTokens = 4 * kNoiseGroups;
  if (largest < 0) {
    usable_ = false;
    return;
  }
  if (std::isinf(x[largest])) return;  // all are -inf
  const auto id_at = [first](int64_t i) { return static_cast<int32_t>(first + i); };
  const double t = draw_.temperature;
  if (t == 0) return take(id_at(largest), x[largest]);
  if (id_ < 0) {  // what has to be beaten is high from the start
    const int32_t id = id_at(largest);
    take(id, x[largest] / t + gumbel(noise_bits_of(noise_, static_cast<uint32_t>(id))));
  }
  NoiseBlock block;
  for (int64_t begin = 0; begin < count; begin += kTokens) {
    const int64_t size = std::min(kTokens, count - begin);
    const double missing = value_ - draw_.ops->max(x + begin, size) / t;
    if (missing > kGumbelMax) continue;
    const uint32_t threshold = least_bits(missing);
    const auto group = static_cast<uint32_t>((first + begin) / 4);
    if (!draw_.noise_block(noise_, group, threshold, block)) continue;
    for (int64_t i = 0; i < size; ++i) {
      const uint32_t bits = block.bits[i % 4][i / 4];
      if (bits >= threshold) take(id_at(begin + i), x[begin + i] / t + gumbel(bits));
    }
  }
}

void RowMaximum::add(const RowMaximum& other) {
  usable_ = usable_ && other.usable_;
  if (other.id_ >= 0) take(other.id_, other.value_);
}

std::optional<int32_t> RowMaximum::token() const {
  if (!usable_ || id_ < 0) return std::nullopt;
  return id_;
}

}  // namespace orthrus
