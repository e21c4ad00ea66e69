#pragma once

#include <optional>
#include <string>

#include "engine/model_registry.h"
#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "model/weights.h"
#include "orthrus/options.h"

namespace orthrus {

/// Where a model's diffusion weights come from.
struct DiffusionSource {
  LoadRequest::Diffusion kind = LoadRequest::Diffusion::kNone;
  std::string path;                ///< of the adapter, as it was named or found
  std::optional<Adapter> adapter;  ///< of kAdapter

  /// Their tensors; null where they are copies of the AR view's, or there are none.
  const TensorSource* tensors(const Checkpoint& checkpoint) const;
};

/// What the options name, else what the model brings: an adapter beside it, or weights of its own.
/// Opens the adapter: Error(kInput) where it does not fit.
DiffusionSource open_diffusion_source(const LoadOptions& options, const ResolvedModel& resolved,
                                      const Checkpoint& checkpoint);

}  // namespace orthrus
