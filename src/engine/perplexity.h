#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "model/forward.h"

namespace orthrus {

struct PerplexityOptions {
  /// Tokens a chunk. Every chunk starts with an empty context; its first token is not scored.
  int64_t chunk = 512;
  int64_t max_chunks = 0;                ///< 0: all of the text
  KvType kv_type = KvType::kBF16;        ///< of the model; the reference's is f32
  const Model* reference = nullptr;      ///< where set: KL(reference || model) is computed too
  std::function<void(double)> progress;  ///< share of the chunks done, 0 to 1
};

struct PerplexityResult {
  int64_t chunks = 0;
  int64_t scored_tokens = 0;
  double mean_nll = 0;        ///< nats a scored token
  double standard_error = 0;  ///< of mean_nll
  double perplexity = 0;      ///< exp(mean_nll)
  /// Against the reference, where there is one.
  std::optional<double> reference_perplexity;
  std::optional<double> kl_mean;         ///< nats
  std::optional<double> kl_max;          ///< nats, the worst position
  std::optional<double> top1_agreement;  ///< share of positions with the same most likely token
};

/// Perplexity of the model's AR view over consecutive chunks of `tokens` (the last one may be
/// shorter). Error(kInput) where there are fewer than two tokens or a logit is not finite.
PerplexityResult perplexity(const Model& model, ComputeContext context,
                            std::span<const int32_t> tokens, const PerplexityOptions& options);

}  // namespace orthrus
