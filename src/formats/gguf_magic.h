#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace orthrus {

/// Whether the file at `path` begins as GGUF files do, whatever its name. What is no regular file
/// is not opened: a named pipe would be waited for.
inline bool has_gguf_magic(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

}  // namespace orthrus
