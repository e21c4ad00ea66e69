#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf.h"

namespace orthrus {

/// One tensor as a GGUF part describes it: ggml name, sizes innermost first, type number.
struct GgufTensorEntry {
  std::string name;
  uint32_t type = 0;
  std::vector<int64_t> sizes;
  std::span<const std::byte> data;  ///< from its offset to the end of the part
};

/// Reads the header, metadata and tensor table of one GGUF part, front to back. Every count and
/// length is compared with the bytes that are left before anything is allocated.
class GgufParser {
 public:
  /// `name` is for messages. Throws Error(kInput) on anything that is not as the format says.
  GgufParser(std::span<const std::byte> bytes, const std::string& name);

  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<GgufTensorEntry> tensors;

 private:
  template <typename T>
  T read(const char* what);
  std::string_view read_string(const char* what);
  GgufValue read_value(uint32_t type, const std::string& key);
  GgufValue read_array(const std::string& key);
  void read_metadata(uint64_t count);
  GgufTensorEntry read_tensor();
  void place_tensors(uint64_t alignment);
  uint64_t alignment() const;
  uint64_t left() const { return bytes_.size() - position_; }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  size_t position_ = 0;
  uint64_t array_elements_ = 0;    // of all arrays so far
  std::vector<uint64_t> offsets_;  // of tensors, from the start of the data
};

}  // namespace orthrus
