#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/row_plan.h"
#include "trainer/fit/adamw.h"

namespace orthrus::train {

/// Where a run stands after `step` steps. With the parameters and their moments it is all that the
/// coming steps depend on: random choices are functions of the seed and the plan's state.
struct TrainingState {
  int64_t step = 0;
  PlanState plan;
  int64_t tokens = 0;  ///< rows of the diffusion view so far
  double seconds = 0;  ///< of training, evaluations not counted
};

/// Writes folder/checkpoint-<step>.safetensors atomically, then removes all but the newest two.
/// `settings` comes back from load_state. Error(kInput) where the disk is full: what was there
/// before stays.
void save_state(const std::string& folder, const TrainingState& state,
                const std::vector<Parameter>& parameters, const std::string& settings);

/// The checkpoints of a folder, checkpoint-<step>.safetensors, the newest first.
std::vector<std::string> saved_states(const std::string& folder);
/// Calls `load` with each of the checkpoints, the newest first, until one of them is whole. An
/// error costs a warning and a call of `damaged`; that of the last one, and any Error(kUsage), is
/// thrown. There must be one.
void load_newest_whole(const std::vector<std::string>& states,
                       const std::function<void(const std::string&)>& load,
                       const std::function<void(const std::string&)>& damaged = {});
/// A damaged checkpoint is none any more; the next run in the folder removes it.
void set_state_aside(const std::string& path);
/// Removes what a process that was killed while it wrote a checkpoint has left, and what was set
/// aside.
void remove_unfinished_states(const std::string& folder);

struct LoadedState {
  TrainingState state;
  std::string settings;
};

/// Its settings alone. Error(kInput) where it is no checkpoint of a run.
LoadedState inspect_state(const std::string& path);

/// Copies the checkpoint into the parameters and their moments. Error(kInput) where it is damaged
/// or of another model: the parameters are then in no certain state.
LoadedState load_state(const std::string& path, std::vector<Parameter>& parameters);
/// The parameters alone, whatever optimiser the run has.
LoadedState load_parameters(const std::string& path, std::vector<Parameter>& parameters);

}  // namespace orthrus::train
