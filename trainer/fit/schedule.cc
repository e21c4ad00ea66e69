#include "trainer/fit/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orthrus::train {

double share_done(const FitOptions& o, const TrainingState& state) {
  if (o.steps > 0) return static_cast<double>(state.step) / static_cast<double>(o.steps);
  return state.seconds / (60 * o.minutes);
}

std::string done_text(const FitOptions& o, const TrainingState& state) {
  const std::string length =
      o.steps > 0 ? fmt::format("{} steps", o.steps) : fmt::format("{:g} minutes", o.minutes);
  // Rounded down: 100 only where nothing is left. The last step may end behind the minutes.
  const double percent = std::floor(100 * std::min(1.0, share_done(o, state)) + 1e-9);
  return fmt::format("{:.0f} % of {}", percent, length);
}

double minutes_left(const FitOptions& o, const TrainingState& state) {
  const double done = share_done(o, state);
  return done > 0 ? std::max(0.0, state.seconds * (1 - done) / done) / 60 : 0;
}

double learning_rate(const FitOptions& o, const TrainingState& state) {
  const double warm = std::min(1.0, static_cast<double>(state.step + 1) /
                                        static_cast<double>(std::max<int64_t>(1, o.warmup_steps)));
  const double cosine =
      0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share_done(o, state))));
  return o.learning_rate * warm * (0.1 + 0.9 * cosine);
}

}  // namespace orthrus::train
