#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/row_plan.h"
#include "trainer/fit/student.h"

namespace orthrus::train {

struct FitOptions {
  std::string model;  ///< directory or GGUF file
  /// Start from it, or "copy"; empty: the checkpoint's own view, else copies of the AR weights.
  std::string adapter;
  std::vector<std::string> data;      ///< shards or folders of them
  std::vector<std::string> held_out;  ///< shards to evaluate on; may be empty
  std::string out;                    ///< folder of checkpoints and the log
  bool resume = false;

  RowPlanOptions plan;  ///< block_size and train_last are taken from `student`
  /// block_size 0: as the start has been trained, 8 for copies.
  StudentOptions student;
  /// Of matrix products: f32, bf16, or auto: bf16 where that is faster (linear.h).
  std::string precision = "auto";
  std::string device = "auto";  ///< cpu, cuda, or auto: a GPU where there is one
  /// How long a process waits for another one, which may be evaluating.
  double peer_minutes = 30;
  int64_t mask_token = -1;  ///< a vocabulary row as the mask instead of a trained embedding
  int64_t step_rows = 2;    ///< rows of a step of all processes; their gradients are added up
  double learning_rate = 1e-3;
  int64_t warmup_steps = 10;
  int64_t steps = 0;    ///< length of the run; 0: by minutes
  double minutes = 10;  ///< of training, evaluations not counted
  double checkpoint_minutes = 5;
  double evaluation_minutes = 10;
  int64_t evaluation_documents = 32;  ///< at most
};

/// Trains until the end of the schedule or until SIGINT or SIGTERM, saves, and returns whether the
/// schedule has ended. Progress goes to stderr, figures to out/log.jsonl. Where the environment
/// names a group of processes (world_from_environment), each takes its part of the rows of every
/// step; the first one alone writes and evaluates, and all stop together.
/// Error(kUsage) where `out` holds a run and resume is false, or the settings differ from the
/// run's; Error(kInput) for files, and where the loss is not finite: out/bad-step.json then holds
/// the rows of the step.
bool fit(const FitOptions& options);

}  // namespace orthrus::train
