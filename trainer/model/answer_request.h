#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace orthrus::train {

/// A prompt, not empty, to be answered.
struct AnswerRequest {
  std::vector<int32_t> prompt;
  uint64_t seed = 0;  ///< of its noise, where the answer is sampled
};

struct BatchOptions {
  int64_t rows = 16;  ///< sequences that share passes
  int64_t max_tokens = 256;
  double temperature = 0;  ///< 0: greedy
  /// Passes of libtorch between two looks at the tokens; 0: 16 on a GPU, which has to wait for
  /// every look, 1 on the CPU.
  int64_t stride = 0;
};

/// The index of a request and its answer, the end-of-sequence token included where there is one.
using OnAnswer = std::function<void(size_t, std::vector<int32_t>)>;

}  // namespace orthrus::train
