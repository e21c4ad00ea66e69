#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orthrus {

/// Element types of tensors as they lie in files. Block types (Q...) hold `block_elements` values
/// of one row in `block_bytes` bytes; their layout is that of ggml.
enum class TensorType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI8,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL
};

struct TensorTypeTraits {
  std::string_view name;   ///< as in GGUF tools: "F32", "Q4_K"
  int64_t block_elements;  ///< 1 for plain types
  size_t block_bytes;
};

const TensorTypeTraits& traits(TensorType type);

/// The type of that name, if it is one we read.
std::optional<TensorType> tensor_type_from_name(std::string_view name);

/// Bytes of a row of `elements` values. `elements` must be a multiple of the block size.
inline size_t row_bytes(TensorType type, int64_t elements) {
  const TensorTypeTraits& t = traits(type);
  return static_cast<size_t>(elements / t.block_elements) * t.block_bytes;
}

}  // namespace orthrus
