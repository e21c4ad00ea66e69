#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/tensor_type.h"

namespace orthrus {

/// A tensor to be written. Types: F32, F16, BF16, I8.
struct SafetensorsEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
};

/// Writes one safetensors file, front to back, as an AtomicFile.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                    const std::map<std::string, std::string>& metadata);

  /// The next bytes of the data, in order of `entries`, row-major, in any pieces.
  void append(std::span<const std::byte> bytes);
  /// All data must have been appended. Flushes to disk and gives the file its name.
  void commit();

 private:
  AtomicFile file_;
  uint64_t expected_ = 0;  // data bytes of all entries
  uint64_t appended_ = 0;
};

}  // namespace orthrus
