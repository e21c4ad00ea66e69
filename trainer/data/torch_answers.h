#pragma once

#include "trainer/data/answers.h"

namespace orthrus::train {

/// libtorch does the work in this process, on options.device.
std::unique_ptr<Answerer> make_torch_answers(const GenerateOptions& options);

}  // namespace orthrus::train
