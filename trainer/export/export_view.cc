#include "trainer/export/export_view.h"

#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_names.h"
#include "trainer/fit/student.h"
#include "trainer/fit/training_state.h"
#include "trainer/model/model_tensors.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

/// Tensors of this process as a source for the engine's writers.
class MemoryTensors : public TensorSource {
 public:
  explicit MemoryTensors(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor& kept = kept_.emplace_back(tensor.detach().to(at::kCPU).contiguous());
      infos_.push_back({name,
                        TensorType::kF32,
                        kept.sizes().vec(),
                        {static_cast<const std::byte*>(kept.data_ptr()), kept.nbytes()},
                        0});
    }
  }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& info : infos_) {
      if (info.name == name) return &info;
    }
    return nullptr;
  }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  void drop(const TensorInfo&) const override {}

 private:
  std::vector<at::Tensor> kept_;
  std::vector<TensorInfo> infos_;
};

/// The trained tensors of a run beside the facts about it.
struct TrainedView {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  int64_t block_size = 0;
  int64_t mask_token_id = -1;
  std::map<std::string, std::string> facts;
};

/// The checkpoints that `run` names, the newest first.
std::vector<std::string> checkpoints_of(const std::string& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) return {run};
  return saved_states(run);
}

TrainedView load_checkpoint(const Checkpoint& base, const std::string& path) {
  const LoadedState info = inspect_state(path);
  const nlohmann::json settings = parse_json(info.settings, path);
  TrainedView view;
  // The shapes of the trained tensors are those of copies.
  ModelTensors tensors = load_tensors(base, DiffusionSource::kCopy);
  try {
    if (settings.at("base_hash") != base_hash(*base.tensors)) {
      fail("{}: trained on another model than {}, or on another form of it", path, base.path);
    }
    view.block_size = settings.at("block_size");
    view.mask_token_id = tensors.config.mask_token_id = settings.at("mask_token_id");
  } catch (const nlohmann::json::exception& error) {
    fail("{}: its settings are incomplete: {}", path, printable(error.what()));
  }
  DualModel model(std::move(tensors));
  StudentOptions options;
  options.block_size = view.block_size;
  Student student(model, options);
  load_parameters(path, student.parameters());
  view.tensors = model.tensors().diffusion();
  const int64_t before = settings.value("tokens_before", int64_t{0});
  view.facts = {{"base_model", base.config.name},
                {"training_steps", std::to_string(info.state.step)},
                {"training_tokens", std::to_string(before + info.state.tokens)},
                {"training_settings", settings.dump()}};
  return view;
}

/// From the newest checkpoint that is whole.
TrainedView load_view(const Checkpoint& base, const std::string& run) {
  const std::vector<std::string> paths = checkpoints_of(run);
  if (paths.empty()) fail("{}: holds no checkpoint of a run", run);
  TrainedView view;
  load_newest_whole(paths, [&](const std::string& path) { view = load_checkpoint(base, path); });
  return view;
}

void export_adapter(const Checkpoint& base, const TrainedView& view, const ExportOptions& options) {
  Adapter adapter;
  adapter.path = options.out;
  adapter.tensors = std::make_unique<MemoryTensors>(view.tensors);
  adapter.block_size = view.block_size;
  adapter.mask_token_id = view.mask_token_id;
  adapter.base_hash = base_hash(*base.tensors);
  adapter.method = "orthrus";
  adapter.metadata = view.facts;
  for (const auto& [key, value] : options.metadata) {
    const bool is_ours = key == "format" || key == "block_size" || key == "mask_token_id" ||
                         key == "base_hash" || key == "method";
    if (key.empty() || is_ours || !adapter.metadata.emplace(key, value).second) {
      fail_usage("metadata \"{}\": choose another key, this one is the export's own", key);
    }
  }
  const AdapterType type =
      options.form == ExportForm::kInt8 ? AdapterType::kInt8 : AdapterType::kBf16;
  if (options.part_bytes > 0) {
    write_adapter_parts(adapter, type, options.out, options.part_bytes);
  } else {
    write_adapter(adapter, type, options.out);
  }
}

void check_official_layout(const Checkpoint& base, const TrainedView& view) {
  std::error_code error;
  if (base.config.architecture != Architecture::kQwen3 || !fs::is_directory(base.path, error)) {
    fail_usage(
        "{}: the official layout is for Qwen3 models in a Hugging Face folder: export an adapter",
        base.path);
  }
  if (view.mask_token_id < 0) {
    fail_usage(
        "the official layout has no place for a trained mask: train with --mask-token, or "
        "export an adapter");
  }
}

void write_tensors(const Checkpoint& base, const TrainedView& view, const std::string& path) {
  std::vector<const TensorInfo*> kept;
  std::vector<SafetensorsEntry> entries;
  for (const TensorInfo& info : base.tensors->tensors()) {
    if (is_diffusion_tensor(info.name)) continue;
    kept.push_back(&info);
    entries.push_back({info.name, info.type, info.shape});
  }
  for (const auto& [name, tensor] : view.tensors) {
    entries.push_back({name, TensorType::kBF16, tensor.sizes().vec()});
  }
  SafetensorsWriter writer(path, entries, {{"format", "pt"}});
  for (const TensorInfo* info : kept) {
    writer.append(info->data);
    base.tensors->drop(*info);
  }
  for (const auto& [name, tensor] : view.tensors) {
    const at::Tensor rounded = tensor.to(at::kBFloat16).to(at::kCPU).contiguous();
    writer.append({static_cast<const std::byte*>(rounded.data_ptr()), rounded.nbytes()});
  }
  writer.commit();
}

void export_checkpoint(const Checkpoint& base, const TrainedView& view, const std::string& out) {
  check_official_layout(base, view);
  std::error_code error;
  fs::create_directories(out, error);
  if (error) fail("{}: cannot be created: {}", out, error.message());
  nlohmann::json config = read_json_file(base.path + "/config.json", size_t{1} << 20);
  config["architectures"] = {"OrthrusLM"};
  config["block_size"] = view.block_size;
  config["mask_token_id"] = view.mask_token_id;
  write_tensors(base, view, out + "/model.safetensors");
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
        "special_tokens_map.json", "vocab.json", "merges.txt", "added_tokens.json"}) {
    if (!fs::exists(fs::path(base.path) / name, error)) continue;
    fs::copy_file(fs::path(base.path) / name, fs::path(out) / name,
                  fs::copy_options::overwrite_existing, error);
    if (error) fail("{}/{}: cannot be copied: {}", base.path, name, error.message());
  }
  write_file_atomically(out + "/config.json", config.dump(2) + "\n");
}

/// An export must not take the place of what it is made from.
void check_out(const ExportOptions& options, const Checkpoint& base) {
  std::error_code error;
  const fs::path out(options.out);
  const bool in_base = fs::equivalent(fs::absolute(out).parent_path(), base.path, error);
  if (fs::equivalent(out, base.path, error) ||
      (fs::exists(out, error) && in_base && !out.filename().string().starts_with("adapter"))) {
    fail_usage("{}: belongs to the base model", options.out);
  }
  for (const std::string& path : checkpoints_of(options.run)) {
    if (fs::equivalent(out, path, error)) fail_usage("{}: is a checkpoint of the run", options.out);
  }
}

/// The files with weights: of parts those that the index names.
std::set<std::string> weight_files(const ExportOptions& options) {
  if (options.form == ExportForm::kCheckpoint) return {options.out + "/model.safetensors"};
  if (options.part_bytes == 0) return {options.out};
  const nlohmann::json index = read_json_file(adapter_in(options.out), size_t{1} << 24);
  std::set<std::string> files;
  for (const auto& [tensor, file] : index.at("weight_map").items()) {
    files.insert(options.out + "/" + file.get<std::string>());
  }
  return files;
}

Exported describe(const ExportOptions& options, const TrainedView& view) {
  const std::set<std::string> files = weight_files(options);
  Exported result{options.out, "whole model in the official layout, its diffusion view bf16", 0,
                  fmt::format("step {}, {} diffusion tokens", view.facts.at("training_steps"),
                              view.facts.at("training_tokens"))};
  if (options.form != ExportForm::kCheckpoint) {
    result.form = options.form == ExportForm::kInt8 ? "int8 adapter" : "bf16 adapter";
    if (options.part_bytes > 0) result.form += fmt::format(" in {} parts", files.size());
  }
  for (const std::string& file : files) result.bytes += fs::file_size(file);
  return result;
}

}  // namespace

Exported export_view(const ExportOptions& options) {
  const Checkpoint base = open_checkpoint(options.model);
  check_out(options, base);
  const TrainedView view = load_view(base, options.run);
  if (options.form == ExportForm::kCheckpoint) {
    if (!options.metadata.empty()) fail_usage("metadata is for adapters");
    export_checkpoint(base, view, options.out);
  } else {
    export_adapter(base, view, options);
  }
  return describe(options, view);
}

}  // namespace orthrus::train
