#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trainer/fit/fit.h"

namespace orthrus::train {

/// All that the curve of a run depends on; kept in its checkpoints and its log. tokens_before:
/// diffusion tokens that the adapter it begins with was trained on.
nlohmann::ordered_json settings_json(const FitOptions& options, const DualModel& model,
                                     const std::string& base_hash, int64_t tokens_before,
                                     const Shard& data);

/// Error(kUsage) names the flag of the first setting that differs from `text`, the settings found
/// at `path`.
void require_same_settings(const nlohmann::ordered_json& ours, const std::string& text,
                           const std::string& path);

}  // namespace orthrus::train
