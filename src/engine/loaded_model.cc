#include "engine/loaded_model.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/available_memory.h"
#include "base/log.h"
#include "engine/cached_load.h"
#include "engine/diffusion_source.h"
#include "engine/draft_weights.h"
#include "engine/machine_cache.h"
#include "engine/model_registry.h"

namespace orthrus {
namespace {

/// A mismatch is a warning: a fine-tune of the base, or the same weights in another file type,
/// draft almost as well, and the text never depends on it.
void check_base(const Adapter& adapter, const Checkpoint& checkpoint) {
  if (!adapter.base_hash.empty() && !is_base(checkpoint, adapter.base_hash)) {
    spdlog::warn(
        "adapter {} was trained on another base than {}: drafts may be poor (the text is not "
        "affected)",
        adapter.path, checkpoint.path);
  }
}

}  // namespace

std::string weights_name(const Model& model, WeightFormat asked) {
  std::map<TensorType, int64_t> values;
  for (const LayerWeights& layer : model.layers) {
    for (const PackedMatrix* matrix :
         {&layer.ar.q_proj, &layer.ar.k_proj, &layer.ar.v_proj, &layer.ar.o_proj,
          &layer.mlp.gate_proj, &layer.mlp.up_proj, &layer.mlp.down_proj}) {
      values[matrix->form()] += matrix->rows() * matrix->cols();
    }
  }
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const TensorType form = std::max_element(values.begin(), values.end(), fewer)->first;
  if (asked == WeightFormat::kQ8 && form == TensorType::kQ8_0) return "q8";
  if (asked == WeightFormat::kQ4 && form == TensorType::kQ4_0) return "q4";
  std::string name(traits(form).name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

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
  Checkpoint checkpoint = open_checkpoint(resolved.path);
  DiffusionSource diffusion = open_diffusion_source(options, resolved, checkpoint);
  if (diffusion.adapter) check_base(*diffusion.adapter, checkpoint);
  LoadRequest request;
  request.format = options.weights;
  request.progress = options.progress;
  request.diffusion = diffusion.kind;
  request.adapter = diffusion.adapter ? &*diffusion.adapter : nullptr;
  std::string source = diffusion.kind == Diffusion::kCheckpoint ? "checkpoint" : diffusion.path;
  if (options.diffusion && diffusion.kind == Diffusion::kNone && find_known_model(options.model)) {
    spdlog::warn(
        "the adapter of {} was not found, so it runs as plain AR: ORTHRUS_MODELS_DIR names the "
        "folder that holds {}/ (`orthrus version` lists those that were searched)",
        options.model, options.model);
  }
  Tokenizer tokenizer = Tokenizer::load(resolved.path);
  std::unique_ptr<ChatTemplate> chat_template = ChatTemplate::load(resolved.path);
  std::string draft_weights;
  if (request.diffusion != Diffusion::kNone) {
    const bool choose = options.draft_weights == DraftWeights::kAuto;
    request.draft_format = choose_draft_format(
        options.draft_weights, checkpoint, diffusion.tensors(checkpoint), options.weights,
        choose ? machine_rates({choose_isa(), pool}) : MachineRates{}, available_memory());
    draft_weights = draft_weights_name(request.draft_format);
  }
  Model model = options.packed_cache.empty()
                    ? load_model(checkpoint, request, pool)
                    : load_cached_model(options.packed_cache, checkpoint, request, pool);
  if (model.has_diffusion()) limit_draft_vocab(model, options.draft_vocab);
  std::string weights = weights_name(model, options.weights);
  const bool quantise =
      options.weights == WeightFormat::kQ8 || options.weights == WeightFormat::kQ4;
  if (quantise && weights != "q8" && weights != "q4") {
    spdlog::info("the weights of {} have few bits already and stay {}", options.model, weights);
  }
  return {std::move(checkpoint), std::move(diffusion.adapter),
          std::move(tokenizer),  std::move(chat_template),
          std::move(model),      std::move(source),
          std::move(weights),    std::move(draft_weights)};
}

}  // namespace orthrus
