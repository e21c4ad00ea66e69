#include "engine/loaded_model.h"

#include "base/log.h"
#include "engine/model_registry.h"

namespace orthrus {
namespace {

/// A mismatch is a warning: a fine-tune of the base, or the same weights in another file type,
/// draft almost as well, and the text never depends on it.
void check_base(const Adapter& adapter, const Checkpoint& checkpoint) {
  if (adapter.base_hash.empty()) return;
  if (adapter.base_hash != base_hash(*checkpoint.tensors)) {
    spdlog::warn(
        "adapter {} was trained on another base than {}: drafts may be poor (the text is not "
        "affected)",
        adapter.path, checkpoint.path);
  }
}

}  // namespace

std::string LoadedModel::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<int32_t> known;
  known.reserve(ids.size());
  for (int32_t id : ids) {
    const bool padding = id >= 0 && id < model.config.vocab_size && !tokenizer.has_token(id);
    if (!padding) known.push_back(id);
  }
  return tokenizer.decode(known, skip_special);
}

LoadedModel open_model(const LoadOptions& options, ThreadPool& pool) {
  using Diffusion = LoadRequest::Diffusion;
  const ResolvedModel resolved = resolve_model(options.model);
  const std::string adapter_path = options.adapter.empty() ? resolved.adapter : options.adapter;
  Checkpoint checkpoint = open_checkpoint(resolved.path);
  std::optional<Adapter> adapter;
  LoadRequest request;
  request.format = options.weights;
  request.progress = options.progress;
  std::string source;
  if (!options.diffusion) {
    request.diffusion = Diffusion::kNone;
  } else if (adapter_path == "copy") {
    request.diffusion = Diffusion::kCopy;
    source = adapter_path;
  } else if (!adapter_path.empty()) {
    adapter = open_adapter(adapter_path, checkpoint.config);
    check_base(*adapter, checkpoint);
    request.diffusion = Diffusion::kAdapter;
    request.adapter = &*adapter;
    source = adapter_path;
  } else if (checkpoint.config.is_orthrus) {
    request.diffusion = Diffusion::kCheckpoint;
    source = "checkpoint";
  } else if (find_known_model(options.model)) {
    spdlog::warn(
        "the adapter of {} was not found, so it runs as plain AR: ORTHRUS_MODELS_DIR names the "
        "folder that holds {}/ (`orthrus version` lists those that were searched)",
        options.model, options.model);
  }
  Tokenizer tokenizer = Tokenizer::load(resolved.path);
  std::unique_ptr<ChatTemplate> chat_template = ChatTemplate::load(resolved.path);
  Model model = load_model(checkpoint, request, pool);
  return {std::move(checkpoint),    std::move(adapter), std::move(tokenizer),
          std::move(chat_template), std::move(model),   std::move(source)};
}

}  // namespace orthrus
