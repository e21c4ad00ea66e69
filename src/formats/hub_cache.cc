#include "formats/hub_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/user_folders.h"
#include "formats/gguf_choice.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 100'000;  // of a snapshot: more is no model

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? expand_home(value) : std::string();
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);  // a link whose blob was removed is not
}

bool is_model_folder(const fs::path& folder) {
  const bool model =
      is_there(folder / "config.json") &&
      (is_there(folder / "model.safetensors") || is_there(folder / "model.safetensors.index.json"));
  return model || is_there(folder / "adapter.safetensors") ||
         is_there(folder / "adapter.safetensors.index.json");
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end && paths.size() < kMaxFiles; entry.increment(error)) {
    if (entry->is_regular_file(error)) {
      paths.push_back(entry->path().lexically_relative(folder).string());
    }
  }
  return paths;
}

}  // namespace

std::string expand_home(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return home_folder() + path.substr(1);
}

std::string hub_home() {
  const std::string home = from_environment("HF_HOME");
  return home.empty() ? user_cache_folder() + "/huggingface" : home;
}

std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (std::string folder = from_environment(name); !folder.empty()) return folder;
  }
  return hub_home() + "/hub";
}

std::string hub_folder_name(const std::string& repository) {
  const size_t slash = repository.find('/');
  return "models--" + repository.substr(0, slash) + "--" + repository.substr(slash + 1);
}

std::string hub_cached_commit(const std::string& repository, const std::string& revision) {
  const fs::path path =
      fs::path(hub_cache_folder()) / hub_folder_name(repository) / "refs" / revision;
  std::ifstream file(path);
  if (!file) return {};
  std::string commit(64, '\0');
  file.read(commit.data(), static_cast<std::streamsize>(commit.size()));
  commit.resize(static_cast<size_t>(file.gcount()));
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
  if (!is_commit_hash(commit)) {
    fail("{}: expected the hash of a commit: `orthrus pull {}` writes it anew", path.string(),
         repository);
  }
  return commit;
}

std::string hub_snapshot_folder(const std::string& repository, const std::string& commit) {
  return (fs::path(hub_cache_folder()) / hub_folder_name(repository) / "snapshots" / commit)
      .string();
}

std::string find_hub_model(const HubName& name) {
  const std::string commit = hub_cached_commit(name.repository, "main");
  if (commit.empty()) return {};
  const std::string folder = hub_snapshot_folder(name.repository, commit);
  if (name.quant.empty() && is_model_folder(folder)) return folder;
  const auto models = gguf_models(files_below(folder));
  const auto chosen = choose_gguf(models, name.quant, name.repository);
  return chosen ? folder + "/" + chosen->parts.front() : std::string();
}

}  // namespace orthrus
