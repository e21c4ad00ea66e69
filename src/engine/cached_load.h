#pragma once

#include <string>

#include "model/weights.h"

namespace orthrus {

/// The file that holds the packed weights of such a load. Another file for other paths, formats and
/// diffusion weights; the same one when the files at these paths change.
std::string packed_cache_path(const std::string& folder, const Checkpoint& checkpoint,
                              const LoadRequest& request);

/// load_model() through a file in `folder`: from it where it fits the model's files as they are,
/// else from these, and then it is written. What is wrong with it is one line in the log; whatever
/// becomes of it, the model is the same.
Model load_cached_model(const std::string& folder, const Checkpoint& checkpoint,
                        const LoadRequest& request, ThreadPool& pool);

}  // namespace orthrus
