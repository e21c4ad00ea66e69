#pragma once

#include "cli/options.h"

namespace orthrus {

/// Generates with the dual view, then with plain AR, on one loaded model; streams both texts and
/// closes with a table of speed and counters. Returns 1 where exact consensus gave another text,
/// which must not happen.
int compare_views(LanguageModel& model, const std::vector<int32_t>& prompt,
                  const GenerateOptions& options);

}  // namespace orthrus
