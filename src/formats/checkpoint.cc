#include "formats/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/adapter.h"
#include "formats/digest.h"
#include "formats/file_exists.h"
#include "formats/gguf.h"
#include "formats/gguf_magic.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

/// A config file, mapped; its text is empty where the file does not exist.
class ConfigText {
 public:
  explicit ConfigText(const std::string& path) {
    if (!file_exists(path)) return;
    file_.emplace(path);
    if (file_->bytes().size() > kMaxConfigBytes) {
      fail("{}: {} bytes, expected at most {}", path, file_->bytes().size(), kMaxConfigBytes);
    }
  }

  std::string_view text() const {
    if (!file_) return {};
    return {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
  }

 private:
  std::optional<MappedFile> file_;
};

Checkpoint open_directory(const std::string& path) {
  const ConfigText config(path + "/config.json");
  if (config.text().empty()) {
    if (!adapter_in(path).empty()) {
      fail("{}: holds an adapter, not a model: give the base model, and this as the adapter", path);
    }
    fail("{}: a directory without config.json, expected a Hugging Face model", path);
  }
  const ConfigText generation(path + "/generation_config.json");
  auto tensors = std::make_unique<SafetensorsSource>(path);
  const bool has_lm_head = tensors->find(kLmHeadName) != nullptr;
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.config = parse_hf_config({path, config.text(), generation.text(), has_lm_head});
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

Checkpoint open_gguf(const std::string& path) {
  auto file = std::make_unique<GgufFile>(path);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.config = parse_gguf_config(*file);
  checkpoint.tensors = std::move(file);
  return checkpoint;
}

/// The views share their biases; a checkpoint that brings biases of its own is another model.
void refuse_diffusion_biases(const TensorSource& tensors) {
  for (const TensorInfo& tensor : tensors.tensors()) {
    if (tensor.name.ends_with("_diff.bias")) {
      fail("{}: tensor {}: biases of the diffusion view are not supported", tensors.path(),
           tensor.name);
    }
  }
}

}  // namespace

Checkpoint open_checkpoint(const std::string& path) {
  std::error_code error;
  if (!file_exists(path)) fail("{}: no such file or directory", path);
  const fs::file_status status = fs::status(path, error);
  if (path.ends_with(kPackedCacheSuffix)) {
    fail("{}: the packed weights of a model (--cache-packed), not a model: give the model itself",
         path);
  }
  if (!fs::is_directory(status) && !path.ends_with(".gguf") && !has_gguf_magic(path)) {
    fail("{}: neither a directory nor a GGUF file{}", path,
         path.ends_with(".safetensors") ? " (give the model's directory; an adapter goes with "
                                          "its base model)"
                                        : "");
  }
  Checkpoint checkpoint = fs::is_directory(status) ? open_directory(path) : open_gguf(path);
  check_tensors(*checkpoint.tensors, ar_tensors(checkpoint.config));
  if (checkpoint.config.is_orthrus) {
    refuse_diffusion_biases(*checkpoint.tensors);
    std::vector<TensorSpec> specs = diffusion_tensors(checkpoint.config);
    if (checkpoint.config.mask_token_id < 0) {
      specs.push_back({std::string(kMaskEmbeddingName), {checkpoint.config.hidden_size}});
    }
    check_tensors(*checkpoint.tensors, specs);
  }
  return checkpoint;
}

std::string base_hash(const TensorSource& tensors) {
  constexpr size_t kSample = 4096;
  std::vector<const TensorInfo*> sorted;
  for (const TensorInfo& tensor : tensors.tensors()) {
    if (!is_diffusion_tensor(tensor.name)) sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->name < b->name; });
  Digest hash;
  for (const TensorInfo* tensor : sorted) {
    hash.add(fmt::format("{} {}", tensor->name, traits(tensor->type).name));
    for (int64_t size : tensor->shape) hash.add(fmt::format(" {}", size));
    hash.add("\n");
    const size_t size = std::min(tensor->data.size(), kSample);
    hash.add(tensor->data.first(size));
    hash.add(tensor->data.last(size));
    tensors.drop(*tensor);
  }
  return hash.hex();
}

bool is_base(const Checkpoint& checkpoint, const std::string& hash) {
  return hash == checkpoint.config.quantized_from || hash == base_hash(*checkpoint.tensors);
}

}  // namespace orthrus
