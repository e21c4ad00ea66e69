#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trainer/fit/fit.h"

namespace orthrus::train {

/// All that the curve of a run depends on; kept in its checkpoints and its log.
nlohmann::ordered_json settings_json(const FitOptions& options, const DualModel& model,
                                     const std::string& base_hash, const Shard& data);

/// Error(kUsage) names the first setting that differs from `text`, the settings found at `path`.
void require_same_settings(const nlohmann::ordered_json& ours, const std::string& text,
                           const std::string& path);

}  // namespace orthrus::train
