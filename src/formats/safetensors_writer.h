#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_type.h"

namespace orthrus {

/// A tensor to be written. Types: F32, F16, BF16, I8.
struct SafetensorsEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
};

/// Writes one safetensors file, front to back, atomically: all goes to a temporary file beside
/// `path`, which commit() renames. A full disk or an exception leaves `path` as it was and no
/// temporary file. Errors are Error(kInput) naming the path.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                    const std::map<std::string, std::string>& metadata);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The next bytes of the data, in order of `entries`, row-major, in any pieces.
  void append(std::span<const std::byte> bytes);
  /// All data must have been appended. Flushes to disk and gives the file its name.
  void commit();

 private:
  void flush();
  [[noreturn]] void fail_write();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
  uint64_t expected_ = 0;  // data bytes of all entries
  uint64_t appended_ = 0;
};

}  // namespace orthrus
