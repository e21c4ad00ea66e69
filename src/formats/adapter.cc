#include "formats/adapter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/dtype.h"
#include "base/error.h"
#include "formats/file_exists.h"
#include "formats/hf_config.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_layout.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

constexpr const char* kMethod = "orthrus";
constexpr const char* kFileName = "adapter.safetensors";
constexpr const char* kIndexName = "adapter.safetensors.index.json";

/// Removes `key` from `metadata` and returns its value, empty where absent.
std::string take(std::map<std::string, std::string>& metadata, const char* key) {
  auto node = metadata.extract(key);
  return node ? node.mapped() : "";
}

int64_t to_integer(const std::string& text, const char* key, const std::string& path) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    fail("{}: metadata {} is \"{}\", expected a whole number", path, key, printable(text));
  }
  return value;
}

void read_metadata(Adapter& adapter, const ModelConfig& base, bool has_mask_embedding) {
  const std::string& path = adapter.path;
  adapter.metadata.erase("format");  // "pt" in files that Python wrote: says nothing here
  const std::string block = take(adapter.metadata, "block_size");
  const std::string mask = take(adapter.metadata, "mask_token_id");
  const std::string method = take(adapter.metadata, "method");
  adapter.base_hash = take(adapter.metadata, "base_hash");
  if (block.empty()) fail("{}: no metadata block_size", path);
  adapter.block_size = to_integer(block, "block_size", path);
  if (mask.empty() == !has_mask_embedding) {
    fail("{}: expected either a tensor {} or metadata mask_token_id, found {}", path,
         kMaskEmbeddingName, has_mask_embedding ? "both" : "neither");
  }
  if (!has_mask_embedding) adapter.mask_token_id = to_integer(mask, "mask_token_id", path);
  check_diffusion_config(adapter.block_size, has_mask_embedding ? 0 : adapter.mask_token_id,
                         base.vocab_size, path);
  adapter.method = method.empty() ? kMethod : method;
  if (adapter.method != kMethod) {
    fail("{}: method \"{}\", expected \"{}\"", path, printable(method), kMethod);
  }
}

/// A scale a row for every I8 tensor, and nothing that does not belong.
void check_names(const TensorSource& tensors, const std::vector<TensorSpec>& specs) {
  std::set<std::string> known;
  for (const TensorSpec& spec : specs) {
    known.insert(spec.name);
    if (tensors.require(spec.name, spec.shape).type != TensorType::kI8) continue;
    const std::string scale = spec.name + std::string(kScaleSuffix);
    const int64_t rows[] = {spec.shape[0]};
    if (tensors.require(scale, rows).type != TensorType::kF32) {
      fail("{}: tensor {} has type {}, expected F32", tensors.path(), scale,
           traits(tensors.find(scale)->type).name);
    }
    known.insert(scale);
  }
  for (const TensorInfo& tensor : tensors.tensors()) {
    if (!known.contains(tensor.name)) {
      fail("{}: tensor {} does not belong in an adapter for this model", tensors.path(),
           printable(tensor.name));
    }
  }
}

float load_float(const TensorInfo& tensor, size_t index) {
  const std::byte* at = tensor.data.data() + index * traits(tensor.type).block_bytes;
  if (tensor.type == TensorType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return tensor.type == TensorType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

/// One row as float32: [inputs].
std::vector<float> load_row(const TensorSource& tensors, const TensorInfo& tensor, int64_t row) {
  const size_t width = static_cast<size_t>(tensor.shape[1]);
  const size_t start = static_cast<size_t>(row) * width;
  std::vector<float> values(width);
  if (tensor.type != TensorType::kI8) {
    for (size_t i = 0; i < width; ++i) values[i] = load_float(tensor, start + i);
    return values;
  }
  const TensorInfo* scales = tensors.find(tensor.name + std::string(kScaleSuffix));
  ORTHRUS_CHECK(scales != nullptr);
  const float scale = load_float(*scales, static_cast<size_t>(row));
  for (size_t i = 0; i < width; ++i) {
    values[i] = static_cast<float>(std::to_integer<int8_t>(tensor.data[start + i])) * scale;
  }
  return values;
}

float row_scale(std::span<const float> row, const std::string& name) {
  float largest = 0;
  for (float value : row) {
    if (!std::isfinite(value)) fail("tensor {} holds a value that is not finite", name);
    largest = std::max(largest, std::fabs(value));
  }
  return largest / 127.0f;
}

/// Writes tensor after tensor in one of the two forms.
class AdapterWriter {
 public:
  AdapterWriter(const Adapter& adapter, AdapterType type) : adapter_(adapter), type_(type) {
    for (const TensorInfo& tensor : adapter.tensors->tensors()) {
      if (!tensor.name.ends_with(kScaleSuffix)) plan(tensor);
    }
  }

  void write(const std::string& path, const std::map<std::string, std::string>& metadata) {
    write_part({0, entries_.size()}, path, metadata);
  }

  void write_parts(const std::string& directory, uint64_t part_bytes,
                   const std::map<std::string, std::string>& metadata) {
    const std::vector<Part> parts = split(part_bytes, metadata);
    nlohmann::json map = nlohmann::json::object();
    uint64_t total = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string name =
          fmt::format("adapter-{:05}-of-{:05}.safetensors", i + 1, parts.size());
      write_part(parts[i], directory + "/" + name, metadata);
      for (size_t e = parts[i].first; e < parts[i].last; ++e) {
        map[entries_[e].name] = name;
        total += bytes_of(entries_[e]);
      }
    }
    const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    write_file_atomically(directory + "/" + kIndexName, index.dump(2) + "\n");
    remove_other_parts(directory, parts.size());
  }

 private:
  enum class Form { kCopy, kBf16, kInt8, kScales };
  struct Step {
    const TensorInfo* tensor;
    Form form;
  };

  /// Entries [first, last) of one file.
  struct Part {
    size_t first, last;
  };

  /// Those of an earlier export, which the index no longer names.
  static void remove_other_parts(const std::string& directory, size_t parts) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
      const std::string name = entry.path().filename().string();
      unsigned number = 0, count = 0;
      int end = 0;
      std::sscanf(name.c_str(), "adapter-%5u-of-%5u.safetensors%n", &number, &count, &end);
      if (end > 0 && static_cast<size_t>(end) == name.size() && count != parts) {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
  }

  static uint64_t bytes_of(const SafetensorsEntry& entry) {
    const auto bytes = tensor_bytes(entry.type, entry.shape);
    ORTHRUS_CHECK(bytes.has_value());
    return *bytes;
  }

  /// Counts the header too: a tensor's entry takes its name and less than 128 bytes.
  std::vector<Part> split(uint64_t part_bytes,
                          const std::map<std::string, std::string>& metadata) const {
    const uint64_t fixed = 256 + nlohmann::json(metadata).dump().size();
    std::vector<Part> parts;
    uint64_t size = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const uint64_t bytes = bytes_of(entries_[i]) + entries_[i].name.size() + 128;
      if (parts.empty() || size + bytes > part_bytes) {
        parts.push_back({i, i});
        size = fixed;
      }
      parts.back().last = i + 1;
      size += bytes;
    }
    return parts;
  }

  void write_part(Part part, const std::string& path,
                  const std::map<std::string, std::string>& metadata) {
    const auto at = [](size_t i) { return static_cast<std::ptrdiff_t>(i); };
    SafetensorsWriter writer(
        path, {entries_.begin() + at(part.first), entries_.begin() + at(part.last)}, metadata);
    for (size_t i = part.first; i < part.last; ++i) run(steps_[i], writer);
    writer.commit();
  }

  void plan(const TensorInfo& tensor) {
    const bool matrix = tensor.shape.size() == 2;
    const TensorType target = type_ == AdapterType::kInt8 ? TensorType::kI8 : TensorType::kBF16;
    if (!matrix || tensor.type == target) {
      add(tensor.name, tensor.type, tensor.shape, {&tensor, Form::kCopy});
      // An int8 tensor that stays so takes its scales along.
      if (tensor.type != TensorType::kI8) return;
      const TensorInfo* scales = adapter_.tensors->find(tensor.name + std::string(kScaleSuffix));
      ORTHRUS_CHECK(scales != nullptr);
      add(scales->name, scales->type, scales->shape, {scales, Form::kCopy});
      return;
    }
    if (target == TensorType::kBF16) {
      add(tensor.name, target, tensor.shape, {&tensor, Form::kBf16});
      return;
    }
    add(tensor.name, target, tensor.shape, {&tensor, Form::kInt8});
    add(tensor.name + std::string(kScaleSuffix), TensorType::kF32, {tensor.shape[0]},
        {&tensor, Form::kScales});
  }

  void add(const std::string& name, TensorType type, std::vector<int64_t> shape, Step step) {
    entries_.push_back({name, type, std::move(shape)});
    steps_.push_back(step);
  }

  void run(const Step& step, SafetensorsWriter& writer) {
    if (step.form == Form::kCopy) {
      writer.append(step.tensor->data);
      return;
    }
    for (int64_t row = 0; row < step.tensor->shape[0]; ++row) {
      const std::vector<float> values = load_row(*adapter_.tensors, *step.tensor, row);
      if (step.form == Form::kBf16) {
        std::vector<bf16_t> out(values.size());
        std::transform(values.begin(), values.end(), out.begin(), f32_to_bf16);
        writer.append(std::as_bytes(std::span(out)));
        continue;
      }
      const float scale = row_scale(values, step.tensor->name);
      if (step.form == Form::kScales) {
        writer.append(std::as_bytes(std::span(&scale, 1)));
        continue;
      }
      std::vector<int8_t> out(values.size());
      for (size_t i = 0; i < values.size(); ++i) out[i] = quantize(values[i], scale);
      writer.append(std::as_bytes(std::span(out)));
    }
  }

  /// To nearest, ties to even (the default rounding mode); a row of zeros has scale 0.
  static int8_t quantize(float value, float scale) {
    if (scale == 0) return 0;
    return static_cast<int8_t>(std::clamp(std::nearbyint(value / scale), -127.0f, 127.0f));
  }

  const Adapter& adapter_;
  AdapterType type_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<Step> steps_;
};

std::map<std::string, std::string> metadata_of(const Adapter& adapter) {
  ORTHRUS_CHECK(adapter.tensors != nullptr);
  std::map<std::string, std::string> metadata = adapter.metadata;
  metadata["block_size"] = std::to_string(adapter.block_size);
  metadata["method"] = adapter.method;
  if (adapter.mask_token_id >= 0) {
    metadata["mask_token_id"] = std::to_string(adapter.mask_token_id);
  }
  if (!adapter.base_hash.empty()) metadata["base_hash"] = adapter.base_hash;
  return metadata;
}

}  // namespace

std::string adapter_in(const std::string& directory) {
  for (const char* name : {kIndexName, kFileName}) {
    std::string path = directory + "/" + name;
    if (file_exists(path)) return path;
  }
  return {};
}

Adapter open_adapter(const std::string& path, const ModelConfig& base) {
  std::error_code ignored;
  Adapter adapter;
  adapter.path = path;
  if (std::filesystem::is_directory(path, ignored)) {
    adapter.path = adapter_in(path);
    if (adapter.path.empty()) fail("{}: a directory without {}", path, kFileName);
  }
  auto tensors = std::make_unique<SafetensorsSource>(adapter.path);
  adapter.metadata = tensors->metadata();
  std::vector<TensorSpec> specs = diffusion_tensors(base);
  const bool has_mask_embedding = tensors->find(kMaskEmbeddingName) != nullptr;
  if (has_mask_embedding) specs.push_back({std::string(kMaskEmbeddingName), {base.hidden_size}});
  if (tensors->find(kEmbeddingName)) fail("{}: holds a whole model, not an adapter", adapter.path);
  check_tensors(*tensors, specs, /*allow_i8=*/true);
  check_names(*tensors, specs);
  read_metadata(adapter, base, has_mask_embedding);
  adapter.tensors = std::move(tensors);
  return adapter;
}

void write_adapter(const Adapter& adapter, AdapterType type, const std::string& path) {
  AdapterWriter(adapter, type).write(path, metadata_of(adapter));
}

void write_adapter_parts(const Adapter& adapter, AdapterType type, const std::string& directory,
                         uint64_t part_bytes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail("{}: cannot be created: {}", directory, error.message());
  AdapterWriter(adapter, type).write_parts(directory, part_bytes, metadata_of(adapter));
}

}  // namespace orthrus
