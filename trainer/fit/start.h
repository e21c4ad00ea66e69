#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "trainer/fit/fit.h"
#include "trainer/model/model_tensors.h"

namespace orthrus::train {

/// What a run begins with.
struct Start {
  Checkpoint base;
  std::string hash;  ///< of the base
  DiffusionSource source;
  std::optional<Adapter> adapter;

  /// Rows of a block where nobody asked.
  int64_t block_size() const;
  /// Diffusion tokens that the adapter was trained on, 0 where it does not say.
  int64_t tokens_before() const;
};

/// The base with --adapter, the checkpoint's own view, or copies. An adapter of another base whose
/// shapes fit (another form of the same model, say) is a warning, one whose shapes do not an
/// Error(kInput) that names both bases.
Start open_start(const FitOptions& options);

/// The weights of both views in float32, and the mask that the options ask for.
ModelTensors start_tensors(const FitOptions& options, const Start& start, at::Device device);

}  // namespace orthrus::train
