#pragma once

#include <string>

#include "trainer/fit/fit.h"
#include "trainer/fit/training_state.h"

namespace orthrus::train {

/// The part of the run's length, steps or minutes, that lies behind it; 1 and more: complete.
double share_done(const FitOptions& options, const TrainingState& state);

/// "12 % of 1000 steps" or "of 85 minutes"; at most 100 %.
std::string done_text(const FitOptions& options, const TrainingState& state);

/// Minutes of training that are left at the speed so far, 0 where nothing is known yet.
double minutes_left(const FitOptions& options, const TrainingState& state);

/// Of the coming step: linear warm-up, then half a cosine down to a tenth.
double learning_rate(const FitOptions& options, const TrainingState& state);

}  // namespace orthrus::train
