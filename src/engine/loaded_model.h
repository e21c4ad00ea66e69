#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "model/weights.h"
#include "orthrus/options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace orthrus {

/// Everything that a model's files hold, ready to use. Immutable.
struct LoadedModel {
  Checkpoint checkpoint;
  std::optional<Adapter> adapter;
  Tokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  ///< null where the model has none
  Model model;
  /// "checkpoint", "copy", the adapter's path, or "" without a diffusion view.
  std::string diffusion_source;
  std::string weights;        ///< weights_name() of what was loaded
  std::string draft_weights;  ///< draft_weights_name(); "" without a diffusion view

  /// As Tokenizer::decode, but ids of the model's vocabulary without a token (padding rows, which a
  /// model can yield) give no text.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
};

/// What most values of the AR view's layers are held in: `asked` where they are in its form ("f32",
/// "bf16", "q8", "q4"), else the name of the file's type that was kept ("bf16", "q4_1", "q4_k").
std::string weights_name(const Model& model, WeightFormat asked);

/// The type of cached keys and values where nobody names one: as precise as the arithmetic.
inline KvType usual_kv_type(WeightFormat weights) {
  return weights == WeightFormat::kF32 ? KvType::kF32 : KvType::kBF16;
}

/// Resolves the model's name, opens its files and packs the weights. A pulled name brings its
/// adapter unless options name another. Error(kInput) in one line where something does not fit.
LoadedModel open_model(const LoadOptions& options, ThreadPool& pool);

}  // namespace orthrus
