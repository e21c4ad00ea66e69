#pragma once

#include <string>
#include <vector>

#include "trainer/fit/process_group.h"
#include "trainer/fit/student.h"
#include "trainer/fit/training_state.h"

namespace orthrus::train {

/// Gives every process the first one's state, parameters and moments.
void share_state(const ProcessGroup& group, TrainingState& state,
                 const std::vector<Parameter>& parameters);

/// Adds up over all processes what their rows of a step have shown. losses: of every row of the
/// step, 0 where another process has it; stats.loss becomes their sum in the order of the rows, the
/// same for any number of processes.
void sum_stats(const ProcessGroup& group, StepStats& stats, std::vector<double>& losses);

/// The same for the gradients. A process without rows counts as zeros.
void sum_gradients(const ProcessGroup& group, const std::vector<Parameter>& parameters);

}  // namespace orthrus::train
