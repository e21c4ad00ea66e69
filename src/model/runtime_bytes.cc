#include "model/runtime_bytes.h"

#include "formats/tensor_names.h"
#include "kernels/packed_matrix.h"
#include "model/head_format.h"

namespace orthrus {

size_t runtime_bytes(const TensorInfo& tensor, WeightFormat format) {
  if (tensor.shape.size() != 2) {
    size_t count = 1;
    for (const int64_t extent : tensor.shape) count *= static_cast<size_t>(extent);
    return count * sizeof(float);
  }
  const bool head = tensor.name == kEmbeddingName || tensor.name == kLmHeadName;
  return packed_bytes(tensor.type, tensor.shape[0], tensor.shape[1],
                      head ? head_format(format) : format);
}

}  // namespace orthrus
