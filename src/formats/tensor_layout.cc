#include "formats/tensor_layout.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus {

std::optional<uint64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape) {
  const TensorTypeTraits& t = traits(type);
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  }
  int64_t row = shape.empty() ? 1 : shape.back();
  if (row % t.block_elements != 0) return std::nullopt;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / t.block_elements, static_cast<int64_t>(t.block_bytes),
                             &bytes)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

void check_no_overlap(std::span<const TensorInfo> tensors, const std::string& where) {
  std::vector<const TensorInfo*> sorted;
  for (const TensorInfo& tensor : tensors) {
    if (!tensor.data.empty()) sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::less<>()(a->data.data(), b->data.data());
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const TensorInfo& before = *sorted[i - 1];
    if (before.data.data() + before.data.size() > sorted[i]->data.data()) {
      fail("{}: the bytes of tensors {} and {} overlap", where, printable(before.name),
           printable(sorted[i]->name));
    }
  }
}

}  // namespace orthrus
