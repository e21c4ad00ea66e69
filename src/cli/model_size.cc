#include "cli/model_size.h"

#include <algorithm>

#include "engine/model_registry.h"
#include "formats/tensor_names.h"
#include "kernels/packed_matrix.h"
#include "model/forward.h"

namespace orthrus {
namespace {

int64_t count_of(const TensorInfo& tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.shape) count *= extent;
  return count;
}

// Matrices are packed; vectors and the mask embedding become floats.
int64_t runtime_bytes(const TensorInfo& tensor, WeightFormat format) {
  if (tensor.shape.size() != 2) return count_of(tensor) * static_cast<int64_t>(sizeof(float));
  return static_cast<int64_t>(packed_bytes(tensor.type, tensor.shape[0], tensor.shape[1], format));
}

class Meter {
 public:
  Meter(ModelSize& size, WeightFormat format) : size_(size), format_(format) {}

  void add(const TensorInfo& tensor, bool diffusion) {
    TypeShare& share = size_.types[std::string(traits(tensor.type).name)];
    const int64_t parameters = count_of(tensor);
    const int64_t bytes = runtime_bytes(tensor, format_);
    share.tensors += 1;
    share.parameters += parameters;
    share.file_bytes += static_cast<int64_t>(tensor.data.size());
    share.runtime_bytes += bytes;
    size_.parameters += parameters;
    size_.runtime_bytes += bytes;
    if (!diffusion) return;
    size_.diffusion_parameters += parameters;
    size_.diffusion_runtime_bytes += bytes;
  }

  // Copies take memory, no file.
  void add_copy(const TensorInfo& tensor) {
    const int64_t bytes = runtime_bytes(tensor, format_);
    size_.parameters += count_of(tensor);
    size_.diffusion_parameters += count_of(tensor);
    size_.runtime_bytes += bytes;
    size_.diffusion_runtime_bytes += bytes;
  }

 private:
  ModelSize& size_;
  WeightFormat format_;
};

void add_specs(Meter& meter, const TensorSource& tensors, const std::vector<TensorSpec>& specs,
               bool diffusion) {
  for (const TensorSpec& spec : specs) {
    if (const TensorInfo* tensor = tensors.find(spec.name)) meter.add(*tensor, diffusion);
  }
}

// The AR tensor that a copied diffusion tensor is made of: the name without "_diff".
std::string base_name(std::string name) {
  const size_t at = name.find("_diff");
  return at == std::string::npos ? name : name.erase(at, 5);
}

}  // namespace

std::string OpenedModel::diffusion_source() const {
  if (adapter) return adapter->path;
  if (copy) return "copies of the AR weights";
  return checkpoint.config.is_orthrus ? "its own files" : "none";
}

OpenedModel open_model_files(const ModelFlags& flags) {
  const LoadOptions options = load_options(flags);
  const ResolvedModel resolved = resolve_model(options.model);
  OpenedModel model{open_checkpoint(resolved.path), std::nullopt};
  if (!options.diffusion) {
    model.checkpoint.config.is_orthrus = false;
    return model;
  }
  const std::string adapter = options.adapter.empty() ? resolved.adapter : options.adapter;
  model.copy = adapter == "copy";
  if (!adapter.empty() && !model.copy)
    model.adapter = open_adapter(adapter, model.checkpoint.config);
  return model;
}

ModelSize measure_model(const OpenedModel& model, WeightFormat format) {
  const ModelConfig& config = model.checkpoint.config;
  const TensorSource& tensors = *model.checkpoint.tensors;
  ModelSize size;
  Meter meter(size, format);
  add_specs(meter, tensors, ar_tensors(config), false);
  if (model.copy) {
    for (const TensorSpec& spec : diffusion_tensors(config)) {
      if (const TensorInfo* tensor = tensors.find(base_name(spec.name))) meter.add_copy(*tensor);
    }
  } else if (model.has_diffusion()) {
    const TensorSource& source = model.adapter ? *model.adapter->tensors : tensors;
    add_specs(meter, source, diffusion_tensors(config), true);
    if (const TensorInfo* mask = source.find(kMaskEmbeddingName)) meter.add(*mask, true);
  }
  return size;
}

KvLayout kv_layout(const ModelConfig& config, const ModelFlags& flags) {
  const KvType usual = flags.weights == "f32" ? KvType::kF32 : KvType::kBF16;
  return kv_layout(config, kv_type(flags.key_type).value_or(usual),
                   kv_type(flags.value_type).value_or(usual));
}

int64_t kv_bytes_per_token(const KvLayout& layout) {
  return static_cast<int64_t>(layout.block_bytes()) / kKvBlockTokens;
}

int64_t kv_bytes(const KvLayout& layout, int64_t tokens) {
  const int64_t blocks = (tokens + kKvBlockTokens - 1) / kKvBlockTokens;
  return blocks * static_cast<int64_t>(layout.block_bytes());
}

int64_t context_tokens(const ModelConfig& config, const ModelFlags& flags) {
  const int64_t limit = config.max_position_embeddings;
  if (flags.context == 0) return limit;
  return limit > 0 ? std::min(flags.context, limit) : flags.context;
}

}  // namespace orthrus
