#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_source.h"

namespace orthrus {

/// Bytes of a tensor of that type and shape ([outputs, inputs] order); nullopt where a size is
/// negative, the count overflows 63 bits, or rows are not whole blocks.
std::optional<uint64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape);

/// Error(kInput) where the bytes of two tensors overlap; names both.
void check_no_overlap(std::span<const TensorInfo> tensors, const std::string& where);

}  // namespace orthrus
