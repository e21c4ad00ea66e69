#include "formats/tensor_source.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace orthrus {

const TensorInfo& TensorSource::require(std::string_view name,
                                        std::span<const int64_t> shape) const {
  std::string where = path().empty() ? "" : path() + ": ";
  const TensorInfo* tensor = find(name);
  if (!tensor) {
    std::string type = unreadable_type(name);
    if (!type.empty()) fail("{}tensor {} has type {}, which is not supported", where, name, type);
    fail("{}tensor {} is missing", where, name);
  }
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    fail("{}tensor {} has shape [{}], expected [{}]", where, name, fmt::join(tensor->shape, ", "),
         fmt::join(shape, ", "));
  }
  return *tensor;
}

}  // namespace orthrus
