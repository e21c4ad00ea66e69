#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/tensor_type.h"

namespace orthrus {

/// A tensor as it lies in a mapped file. Shapes are in Hugging Face order: [outputs, inputs] for
/// a matrix, whatever the file's own order. The bytes are checked to be in the file and to match
/// type and shape.
struct TensorInfo {
  std::string name;  ///< Hugging Face name, e.g. "model.layers.0.mlp.up_proj.weight"
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  ///< HF order, outermost first
  /// Row-major; block types hold whole rows. Not aligned for the type: safetensors files may put
  /// it at any byte.
  std::span<const std::byte> data;
  /// Heads whose rows are interleaved for ggml's rotary embedding (llama-architecture GGUF files,
  /// q_proj and k_proj): file row h*D + 2*i + j is HF row h*D + j*D/2 + i. 0: rows are in HF order.
  int interleaved_heads = 0;
};

/// Named tensors of one model, from safetensors or GGUF. Immutable after opening.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The tensor of that Hugging Face name, or nullptr.
  virtual const TensorInfo* find(std::string_view name) const = 0;
  /// All tensors in file order.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  /// The tensor's file pages are not needed again (see MappedFile::drop).
  virtual void drop(const TensorInfo& tensor) const = 0;
  /// The files that the tensors lie in.
  virtual std::vector<const MappedFile*> files() const { return {}; }
  /// Where the tensors come from, for messages. Empty where they have no file.
  virtual std::string path() const { return {}; }
  /// The type's name of a tensor that is in the file in a type we do not read (such tensors are not
  /// in tensors()), else empty.
  virtual std::string unreadable_type(std::string_view name) const { return {}; }
  /// Throws Error(kInput) that names the first missing tensor or the first of another shape.
  const TensorInfo& require(std::string_view name, std::span<const int64_t> shape) const;
};

/// For TensorSource::files().
inline std::vector<const MappedFile*> file_pointers(
    const std::vector<std::unique_ptr<MappedFile>>& files) {
  std::vector<const MappedFile*> pointers;
  for (const auto& file : files) pointers.push_back(file.get());
  return pointers;
}

}  // namespace orthrus
