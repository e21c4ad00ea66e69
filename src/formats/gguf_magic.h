#pragma once

#include <cstring>
#include <fstream>
#include <string>

namespace orthrus {

/// Whether the file at `path` begins as GGUF files do, whatever its name.
inline bool has_gguf_magic(const std::string& path) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

}  // namespace orthrus
