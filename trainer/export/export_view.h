#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace orthrus::train {

enum class ExportForm : uint8_t {
  kBf16,       ///< adapter
  kInt8,       ///< adapter, a scale a row
  kCheckpoint  ///< a whole model in the official layout (OrthrusLM)
};

struct ExportOptions {
  std::string model;  ///< the base that was trained on
  std::string run;    ///< folder of `fit` (its newest checkpoint counts) or one of its checkpoints
  /// A .safetensors file; a folder where an adapter is written in parts, and for a checkpoint.
  std::string out;
  uint64_t part_bytes = 0;  ///< most bytes of an adapter's file; 0: one file
  ExportForm form = ExportForm::kBf16;
  /// Words for an adapter's metadata, such as license; not those that the format or a run's facts
  /// have.
  std::map<std::string, std::string> metadata;
};

/// What an export has written.
struct Exported {
  std::string path;
  std::string form;    ///< in words: "int8 adapter in 2 parts"
  uint64_t bytes = 0;  ///< of the files with weights
  std::string origin;  ///< the step it is of, and its diffusion tokens
};

/// Writes the diffusion view of a run for `orthrus`. Error(kInput) where the run is of another
/// model; Error(kUsage) where the base cannot have a whole checkpoint: the official layout is for
/// Qwen3 in a Hugging Face folder, with a vocabulary row as the mask; where
/// `metadata` has a word that is taken, or a checkpoint is to have any.
Exported export_view(const ExportOptions& options);

}  // namespace orthrus::train
