#include "decode/prefill_pace.h"

#include <algorithm>

namespace orthrus {
namespace {

/// Steps whose share is kept for later.
constexpr double kBurst = 4;

}  // namespace

int64_t PrefillPace::rows(const PassShape& decoding, std::span<const Prompt> prompts, double share,
                          int64_t most) {
  const bool steps = decoding.ar_rows + decoding.diffusion_rows > 0;
  const double step_seconds = steps ? cost_.predict(decoding) : 0;
  if (steps) {
    const double earned = share * step_seconds;
    credit_ = std::min(credit_ + earned, kBurst * earned);
    if (credit_ <= 0) return 0;
  }
  int64_t wanted = 0;
  for (const Prompt& prompt : prompts) wanted += prompt.rows;
  most = std::min(most, wanted);
  if (most == 0) return 0;
  const auto seconds_of = [&](int64_t rows) {
    PassShape shape = decoding;
    for (const Prompt& prompt : prompts) {
      const int64_t taken = std::min(rows, prompt.rows);
      if (taken > 0) shape.add(View::kAr, taken, 0, prompt.position);
      rows -= taken;
    }
    return cost_.predict(shape) - step_seconds;
  };
  // One row at least, whatever its context costs: the credit pays it back later.
  int64_t fits = 1, beyond = most + 1;
  while (beyond - fits > 1) {
    const int64_t rows = fits + (beyond - fits) / 2;
    (seconds_of(rows) <= credit_ ? fits : beyond) = rows;
  }
  credit_ -= std::max(0.0, seconds_of(fits));
  return fits;
}

}  // namespace orthrus
