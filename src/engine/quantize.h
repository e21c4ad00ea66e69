#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "base/thread_pool.h"
#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "orthrus/options.h"

namespace orthrus {

struct QuantizeRequest {
  WeightFormat format = WeightFormat::kQ8;    ///< kBF16, kQ8 or kQ4
  bool diffusion = true;                      ///< false: the AR view alone
  const Adapter* adapter = nullptr;           ///< its view goes before the checkpoint's own
  std::function<void(double)> progress = {};  ///< share done, 0 to 1
  std::stop_token stop = {};
};

struct QuantizeResult {
  bool stopped = false;  ///< then nothing was written
  int64_t tensors = 0;
  uint64_t bytes = 0;
};

/// Writes a model as one GGUF file, a tensor at a time, whose weights hold the very values that
/// load_model makes of the same source in that format (docs/formats.md, "Quantised files").
/// `output` is written whole or not at all. Error(kInput) where it is a file of the source, and
/// where the source has no form in GGUF.
QuantizeResult quantize_model(const Checkpoint& checkpoint, const QuantizeRequest& request,
                              const std::string& output, ThreadPool& pool);

}  // namespace orthrus
