#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/answers.h"

namespace orthrus::train {

struct MakeDataOptions {
  std::vector<std::string> prompts;  ///< JSONL files, forms as `orthrus generate` takes; *.txt: a
                                     ///< prompt a line
  /// Prompts of the same forms; those of `prompts` and self-prompts that share a run of words with
  /// one of them (overlap.h) are left out.
  std::vector<std::string> held_out;
  std::string system_prompt;                    ///< empty: the template's own
  int64_t limit = 0;                            ///< prompts of each file, 0: all
  int64_t self_prompts = 0;                     ///< user turns that the model writes by itself
  std::vector<std::string> self_prompt_starts;  ///< what those begin with, in turn
  std::string out;                              ///< folder of the shards
  int64_t shard_documents = 256;
  GenerateOptions generate;
};

/// Prompts in, the frozen model's own answers out, shard by shard. Shards that are there are kept,
/// so that the same call goes on where it was stopped; Error(kUsage) where they were made
/// otherwise. Progress goes to stderr.
void make_data(const MakeDataOptions& options);

}  // namespace orthrus::train
