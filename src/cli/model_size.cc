#include "cli/model_size.h"

#include <algorithm>

#include "base/available_memory.h"
#include "base/error.h"
#include "engine/draft_weights.h"
#include "engine/generator.h"
#include "engine/loaded_model.h"
#include "engine/machine_cache.h"
#include "engine/model_registry.h"
#include "formats/tensor_names.h"
#include "model/forward.h"
#include "model/runtime_bytes.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace orthrus {
namespace {

using Diffusion = LoadRequest::Diffusion;

constexpr int64_t kSamplerBytes = 32;  // of a token of the vocabulary: candidate and weights

/// What the process takes as it is with the model's tokenizer and template beside it: code,
/// libraries and tables.
int64_t program_bytes(const std::string& path) {
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;
  try {
    tokenizer.emplace(Tokenizer::load(path));
    chat_template = ChatTemplate::load(path);
  } catch (const Error&) {
    // Files without a tokenizer can be looked at all the same; whoever runs them is told.
  }
  return resident_memory();
}

int64_t count_of(const TensorInfo& tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.shape) count *= extent;
  return count;
}

class Meter {
 public:
  Meter(ModelSize& size, WeightFormat format, std::optional<WeightFormat> draft_format)
      : size_(size), format_(format), draft_format_(draft_format) {}

  void add(const TensorInfo& tensor, bool diffusion) {
    TypeShare& share = size_.types[std::string(traits(tensor.type).name)];
    const int64_t parameters = count_of(tensor);
    const auto bytes = static_cast<int64_t>(
        runtime_bytes(tensor, diffusion ? draft_format_.value_or(format_) : format_));
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
    const auto bytes = static_cast<int64_t>(runtime_bytes(tensor, draft_format_.value_or(format_)));
    size_.parameters += count_of(tensor);
    size_.diffusion_parameters += count_of(tensor);
    size_.runtime_bytes += bytes;
    size_.diffusion_runtime_bytes += bytes;
  }

  // A twin takes memory where it is smaller.
  void add_twin(const TensorInfo& tensor) {
    const size_t packed = runtime_bytes(tensor, *draft_format_);
    if (packed >= runtime_bytes(tensor, format_)) return;
    const auto bytes = static_cast<int64_t>(packed);
    size_.runtime_bytes += bytes;
    size_.diffusion_runtime_bytes += bytes;
  }

 private:
  ModelSize& size_;
  WeightFormat format_;
  std::optional<WeightFormat> draft_format_;
};

std::optional<WeightFormat> draft_format(const OpenedModel& model, const ModelFlags& flags) {
  if (!model.has_diffusion()) return std::nullopt;
  const DraftWeights wish = draft_weights(flags.draft_weights);
  MachineRates rates;
  if (wish == DraftWeights::kAuto) {
    ThreadPool pool(flags.threads);
    rates = machine_rates({choose_isa(), pool});
  }
  return choose_draft_format(wish, model.checkpoint, model.diffusion.tensors(model.checkpoint),
                             weight_format(flags.weights), rates, available_memory());
}

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
  switch (diffusion.kind) {
    case Diffusion::kAdapter:
      return diffusion.adapter->path;
    case Diffusion::kCopy:
      return "copies of the AR weights";
    case Diffusion::kCheckpoint:
      return "its own files";
    case Diffusion::kNone:
      break;
  }
  return "none";
}

int64_t OpenedModel::block_size() const {
  switch (diffusion.kind) {
    case Diffusion::kAdapter:
      return diffusion.adapter->block_size;
    case Diffusion::kCopy:
      return kCopyBlockSize;
    case Diffusion::kCheckpoint:
      return checkpoint.config.block_size;
    case Diffusion::kNone:
      break;
  }
  return 1;
}

OpenedModel open_model_files(const ModelFlags& flags) {
  const LoadOptions options = load_options(flags);
  const ResolvedModel resolved = resolve_model(options.model);
  OpenedModel model{open_checkpoint(resolved.path), {}};
  model.diffusion = open_diffusion_source(options, resolved, model.checkpoint);
  return model;
}

ModelSize measure_model(const OpenedModel& model, const ModelFlags& flags) {
  const ModelConfig& config = model.checkpoint.config;
  const TensorSource& tensors = *model.checkpoint.tensors;
  const std::optional<WeightFormat> draft = draft_format(model, flags);
  ModelSize size;
  Meter meter(size, weight_format(flags.weights), draft);
  add_specs(meter, tensors, ar_tensors(config), false);
  if (draft) {
    for (const TensorSpec& spec : twinned_tensors(config)) {
      if (const TensorInfo* tensor = tensors.find(spec.name)) meter.add_twin(*tensor);
    }
  }
  if (model.diffusion.kind == Diffusion::kCopy) {
    for (const TensorSpec& spec : diffusion_tensors(config)) {
      if (const TensorInfo* tensor = tensors.find(base_name(spec.name))) meter.add_copy(*tensor);
    }
  } else if (model.has_diffusion()) {
    const TensorSource& source = *model.diffusion.tensors(model.checkpoint);
    add_specs(meter, source, diffusion_tensors(config), true);
    if (const TensorInfo* mask = source.find(kMaskEmbeddingName)) meter.add(*mask, true);
  }
  return size;
}

KvLayout kv_layout(const ModelConfig& config, const ModelFlags& flags) {
  const KvType usual = usual_kv_type(weight_format(flags.weights));
  return kv_layout(config, key_type(flags).value_or(usual), value_type(flags).value_or(usual));
}

int64_t kv_bytes_per_token(const KvLayout& layout) {
  return static_cast<int64_t>(layout.block_bytes()) / kKvBlockTokens;
}

int64_t kv_bytes(const KvLayout& layout, int64_t tokens) {
  return blocks_for(tokens) * static_cast<int64_t>(layout.block_bytes());
}

int64_t working_bytes(const OpenedModel& model, const ModelFlags& flags, int64_t batch,
                      Consensus consensus) {
  ModelConfig config = model.checkpoint.config;
  config.block_size = model.has_diffusion() ? model.block_size() : 0;
  const int64_t context = context_tokens(config, flags);
  const PassLimits limits = pass_limits(config, flags.ubatch, batch, context);
  const int threads = flags.threads > 0 ? flags.threads : usable_threads();
  const size_t passes = Forward::memory_bytes(config, kv_layout(config, flags), threads, limits);
  const bool keeps_drafts = config.block_size > 0 && consensus != Consensus::kExact;
  const int64_t drafts = keeps_drafts ? limits.logit_rows * config.vocab_size * 4 : 0;
  const int64_t samplers = batch * kSamplerBytes * config.vocab_size;
  return static_cast<int64_t>(passes) + drafts + samplers + program_bytes(model.checkpoint.path);
}

int64_t context_tokens(const ModelConfig& config, const ModelFlags& flags) {
  const int64_t limit = config.max_position_embeddings;
  const int64_t context = flags.context.value_or(kDefaultContext);
  if (context == 0) return limit;
  return limit > 0 ? std::min(context, limit) : context;
}

}  // namespace orthrus
