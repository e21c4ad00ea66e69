#include "engine/draft_weights.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "formats/tensor_names.h"
#include "model/head_format.h"
#include "model/runtime_bytes.h"

namespace orthrus {
namespace {

/// Share of the accepted drafts that is left with 8 and 4 bits (SmolLM2-135M, GSM8K).
constexpr double kKeptByQ8 = 0.995;
constexpr double kKeptByQ4 = 0.975;
/// A usual cycle: drafts, and of them accepted with weights in full precision.
constexpr int64_t kDrafts = 5;
constexpr double kAccepted = 1.8;
constexpr int64_t kContext = 256;
/// Less gain than this is not worth the memory of more bits.
constexpr double kWorthwhile = 1.02;
constexpr double kMemoryShare = 0.25;

struct Estimate {
  ModelCost cost;
  double twin_bytes = 0;
};

bool is_head(const TensorInfo& tensor) {
  return tensor.name == kEmbeddingName || tensor.name == kLmHeadName;
}

/// Adds what a matrix of the files costs once a model of that format is packed.
void add(WeightCost& cost, const TensorInfo& tensor, WeightFormat format) {
  const TensorType form = packed_form(tensor.type, is_head(tensor) ? head_format(format) : format);
  cost.add(form, static_cast<double>(runtime_bytes(tensor, format)),
           static_cast<double>(tensor.shape[0] * tensor.shape[1]));
}

Estimate estimate(const Checkpoint& checkpoint, const TensorSource* diffusion, WeightFormat format,
                  std::optional<WeightFormat> draft) {
  const ModelConfig& config = checkpoint.config;
  const TensorSource& base = *checkpoint.tensors;
  Estimate result;
  ModelCost& cost = result.cost;
  const auto matrix = [](const TensorSource& source, const TensorSpec& spec) {
    const TensorInfo* tensor = source.find(spec.name);
    return tensor != nullptr && tensor->shape.size() == 2 ? tensor : nullptr;
  };
  for (const TensorSpec& spec : twinned_tensors(config)) {
    const TensorInfo* tensor = matrix(base, spec);
    if (tensor == nullptr) continue;
    const size_t own = runtime_bytes(*tensor, format);
    const size_t fewer = draft ? runtime_bytes(*tensor, *draft) : own;
    const bool head = is_head(*tensor), twin = fewer < own;
    add(head ? cost.lm_head : twin ? cost.ar : cost.shared, *tensor, format);
    if (!twin) continue;
    add(head ? cost.draft_lm_head.emplace() : cost.diffusion, *tensor, *draft);
    result.twin_bytes += static_cast<double>(fewer);
  }
  for (const TensorSpec& spec : ar_tensors(config)) {
    const TensorInfo* tensor = matrix(base, spec);
    if (tensor == nullptr || spec.name.find(".self_attn.") == std::string::npos) continue;
    add(cost.ar, *tensor, format);
    if (diffusion == nullptr) add(cost.diffusion, *tensor, draft.value_or(format));
  }
  if (diffusion != nullptr) {
    for (const TensorSpec& spec : diffusion_tensors(config)) {
      const TensorInfo* tensor = matrix(*diffusion, spec);
      if (tensor) add(cost.diffusion, *tensor, draft.value_or(format));
    }
  }
  return result;
}

double tokens_per_second(const Estimate& estimate, double kept, const MachineRates& rates) {
  const CostModel cost(estimate.cost, rates);
  PassShape draft, verify;
  draft.add(View::kDiffusion, kDrafts + 1, kDrafts, kContext);
  verify.add(View::kAr, kDrafts + 1, kDrafts + 1, kContext);
  return (1 + kAccepted * kept) / (cost.predict(draft) + cost.predict(verify));
}

}  // namespace

std::optional<WeightFormat> choose_draft_format(DraftWeights wish, const Checkpoint& checkpoint,
                                                const TensorSource* diffusion, WeightFormat format,
                                                const MachineRates& rates, int64_t available) {
  switch (wish) {
    case DraftWeights::kSame:
      return std::nullopt;
    case DraftWeights::kQ8:
      return WeightFormat::kQ8;
    case DraftWeights::kQ4:
      return WeightFormat::kQ4;
    case DraftWeights::kAuto:
      break;
  }
  std::optional<WeightFormat> best;
  double best_rate = tokens_per_second(estimate(checkpoint, diffusion, format, best), 1, rates);
  // From few bytes to many.
  for (const auto& [fewer, kept] :
       {std::pair(WeightFormat::kQ4, kKeptByQ4), std::pair(WeightFormat::kQ8, kKeptByQ8)}) {
    const Estimate with = estimate(checkpoint, diffusion, format, fewer);
    if (with.twin_bytes > kMemoryShare * static_cast<double>(available)) continue;
    const double rate = tokens_per_second(with, kept, rates);
    if (rate < kWorthwhile * best_rate) continue;
    best = fewer;
    best_rate = rate;
  }
  return best;
}

void limit_draft_vocab(Model& model, int64_t draft_vocab) {
  if (draft_vocab < 0) fail_usage("draft_vocab: expected 0 (all) or more, found {}", draft_vocab);
  if (draft_vocab == 0 || draft_vocab >= model.config.vocab_size) return;
  const PackedMatrix& head = model.draft_lm_head ? *model.draft_lm_head : model.lm_head;
  model.draft_lm_head = head.first_rows(draft_vocab);
}

const char* draft_weights_name(std::optional<WeightFormat> draft_format) {
  if (!draft_format) return "same";
  return *draft_format == WeightFormat::kQ8 ? "q8" : "q4";
}

}  // namespace orthrus
