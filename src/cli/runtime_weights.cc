#include "cli/runtime_weights.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "cli/options.h"
#include "formats/tensor_names.h"
#include "kernels/packed_matrix.h"

namespace orthrus {
namespace {

/// The matrix whose type has the most values of all.
const TensorInfo& typical_matrix(const Checkpoint& checkpoint) {
  std::map<TensorType, int64_t> values;
  std::map<TensorType, const TensorInfo*> example;
  for (const TensorSpec& spec : ar_tensors(checkpoint.config)) {
    const TensorInfo* tensor = checkpoint.tensors->find(spec.name);
    const bool ends = spec.name == kEmbeddingName || spec.name == kLmHeadName;
    if (!tensor || tensor->shape.size() != 2 || ends) continue;
    values[tensor->type] += tensor->shape[0] * tensor->shape[1];
    example.emplace(tensor->type, tensor);
  }
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return *example.at(std::max_element(values.begin(), values.end(), less)->first);
}

}  // namespace

std::string runtime_weights(const Checkpoint& checkpoint, const std::string& asked) {
  const TensorInfo& matrix = typical_matrix(checkpoint);
  const auto bytes = [&](WeightFormat format) {
    return packed_bytes(matrix.type, matrix.shape[0], matrix.shape[1], format);
  };
  // q8 and q4 keep block types of at most as many bits.
  const bool blocks = traits(matrix.type).block_elements > 1;
  const bool quantizes = asked == "q8" || asked == "q4";
  const bool kept =
      quantizes && blocks && bytes(weight_format(asked)) == bytes(WeightFormat::kAuto);
  if (asked != "auto" && !kept) return asked;
  std::string name(traits(matrix.type).name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace orthrus
