#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/tensor_type.h"

namespace orthrus {

/// The block types with a golden: 64 random blocks each, with the values of the reference library.
inline const std::vector<TensorType>& block_types() {
  static const std::vector<TensorType> types = {
      TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,  TensorType::kQ5_1,
      TensorType::kQ8_0, TensorType::kQ2_K, TensorType::kQ3_K,  TensorType::kQ4_K,
      TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kIQ4_NL};
  return types;
}

/// Just enough of a reader for tests/data/gguf/blocks.safetensors, whose header lists each tensor
/// as "NAME":{...,"data_offsets":[begin,end]}.
class GoldenBlocks {
 public:
  GoldenBlocks() {
    std::ifstream file(ORTHRUS_TEST_DATA "/gguf/blocks.safetensors", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    uint64_t header = 0;
    if (bytes_.size() > 8) std::memcpy(&header, bytes_.data(), 8);
    if (header == 0 || header > bytes_.size() - 8) throw std::runtime_error("no golden blocks");
    header_.assign(bytes_.data() + 8, header);
    data_at_ = 8 + header;
  }

  std::vector<std::byte> raw(TensorType type) const { return read<std::byte>(type, ".raw"); }
  std::vector<float> values(TensorType type) const { return read<float>(type, ".f32"); }

 private:
  template <typename T>
  std::vector<T> read(TensorType type, const char* suffix) const {
    size_t at = header_.find("\"" + std::string(traits(type).name) + suffix + "\"");
    if (at == std::string::npos) throw std::runtime_error("no such golden block");
    const std::string key = "\"data_offsets\":[";
    const char* numbers = header_.c_str() + header_.find(key, at) + key.size();
    char* comma = nullptr;
    const size_t begin = std::strtoull(numbers, &comma, 10);
    const size_t end = std::strtoull(comma + 1, nullptr, 10);
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), bytes_.data() + data_at_ + begin, end - begin);
    return out;
  }

  std::vector<char> bytes_;
  std::string header_;
  size_t data_at_ = 0;
};

}  // namespace orthrus
