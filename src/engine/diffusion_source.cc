#include "engine/diffusion_source.h"

namespace orthrus {

const TensorSource* DiffusionSource::tensors(const Checkpoint& checkpoint) const {
  if (kind == LoadRequest::Diffusion::kAdapter) return adapter->tensors.get();
  return kind == LoadRequest::Diffusion::kCheckpoint ? checkpoint.tensors.get() : nullptr;
}

DiffusionSource open_diffusion_source(const LoadOptions& options, const ResolvedModel& resolved,
                                      const Checkpoint& checkpoint) {
  using Diffusion = LoadRequest::Diffusion;
  DiffusionSource source;
  if (!options.diffusion) return source;
  source.path = options.adapter.empty() ? resolved.adapter : resolve_adapter(options.adapter);
  if (source.path == "copy") {
    source.kind = Diffusion::kCopy;
  } else if (!source.path.empty()) {
    source.kind = Diffusion::kAdapter;
    source.adapter = open_adapter(source.path, checkpoint.config);
  } else if (checkpoint.config.is_orthrus) {
    source.kind = Diffusion::kCheckpoint;
  }
  return source;
}

}  // namespace orthrus
