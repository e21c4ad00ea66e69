#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace orthrus {

/// Writes the whole file under a temporary name, flushes it to disk and renames it: `path` is as it
/// was or complete, never in between. Error(kInput) names the path, which must not be a device or
/// the like; no temporary file is left.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, const std::string& text);

/// Error(kInput) where something is at `path` that a file must not be renamed over: a device, a
/// folder.
void check_replaceable(const std::string& path);

}  // namespace orthrus
