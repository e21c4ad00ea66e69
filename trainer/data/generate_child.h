#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthrus::train {

/// How the frozen model answers: flags of `orthrus generate`.
struct GenerateOptions {
  std::string program;  ///< path of orthrus
  std::string model;
  std::string weights = "auto";
  int64_t batch = 16;
  int64_t max_tokens = 256;
  double temperature = 0;
  uint64_t seed = 0;
};

/// The answer to each prompt, in their order, the end-of-sequence token included where there is
/// one. `orthrus generate` does the work as a child process; scratch files begin with `scratch` and
/// are removed. Prompt i has the seed options.seed + i. Error(kInput) where the child fails.
std::vector<std::vector<int32_t>> generate_answers(const std::vector<std::vector<int32_t>>& prompts,
                                                   const GenerateOptions& options,
                                                   const std::string& scratch);

/// `orthrus` beside this program, else the one in PATH.
std::string default_orthrus_program();

}  // namespace orthrus::train
