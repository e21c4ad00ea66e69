#include "decode/prefill_pace.h"

#include <algorithm>

namespace orthrus {
namespace {

/// Steps whose share is kept for later, or may be borrowed.
constexpr double kBurst = 8;
/// Steps whose share a pass of prompts alone waits for.
constexpr double kOwnPass = 4;

}  // namespace

int64_t PrefillPace::rows(const PassShape& decoding, std::span<const Prompt> prompts,
                          const Terms& terms, int64_t most) {
  const bool steps = decoding.ar_rows + decoding.diffusion_rows > 0;
  const double step_seconds = steps ? cost_.predict(decoding) : 0;
  if (steps) {
    earned_ = terms.share * step_seconds;
    credit_ = std::min(credit_ + 1, kBurst);
  }
  const auto seconds_of = [&](int64_t rows) {
    PassShape shape = decoding;
    for (const Prompt& prompt : prompts) {
      const int64_t taken = std::min(rows, prompt.rows);
      if (taken > 0) shape.add(View::kAr, taken, prompt.scored ? taken : 0, prompt.position);
      rows -= taken;
    }
    return std::max(0.0, cost_.predict(shape) - step_seconds);
  };
  // One row at least, whatever its context costs: later ones pay for it.
  const auto rows_for = [&](double seconds, int64_t wanted) -> int64_t {
    wanted = std::min(wanted, most);
    if (wanted == 0 || (steps && seconds <= 0)) return 0;
    int64_t fits = 1, beyond = wanted + 1;
    while (beyond - fits > 1) {
      const int64_t rows = fits + (beyond - fits) / 2;
      (seconds_of(rows) <= seconds ? fits : beyond) = rows;
    }
    return fits;
  };
  int64_t wanted = 0;
  for (const Prompt& prompt : prompts) wanted += prompt.rows;
  int64_t rows = rows_for(credit_ * earned_, wanted);
  if (terms.borrow && wanted > 0) {
    const double most_steps = std::min(credit_ + kBurst, kBurst);
    rows = std::max(rows, rows_for(most_steps * earned_, prompts.front().rows));
  }
  if (rows > 0 && earned_ > 0) credit_ -= seconds_of(rows) / earned_;
  return rows;
}

bool PrefillPace::affords_own_pass() const { return credit_ >= kOwnPass; }

}  // namespace orthrus
