#include "formats/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/user_folders.h"
#include "formats/gguf_choice.h"
#include "formats/json.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = 16 << 20;
constexpr size_t kMaxFiles = 100'000;  // of a snapshot: more is no model

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? expand_home(value) : std::string();
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);  // a link whose blob was removed is not
}

/// Whether NAME.safetensors, or its index and all parts that it lists, are there. Python writes
/// refs before files: what it was stopped at is in the cache in part.
bool has_safetensors(const fs::path& folder, const std::string& name) {
  if (is_there(folder / (name + ".safetensors"))) return true;
  const fs::path index_path = folder / (name + ".safetensors.index.json");
  if (!is_there(index_path)) return false;
  const nlohmann::json index = read_json_file(index_path.string(), kMaxIndexBytes);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) return true;  // opening it says what is wrong
  std::set<std::string> parts;
  for (const auto& entry : *map) {
    if (entry.is_string()) parts.insert(entry.get<std::string>());
  }
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return is_there(folder / part); });
}

bool is_model_folder(const fs::path& folder) {
  return (is_there(folder / "config.json") && has_safetensors(folder, "model")) ||
         has_safetensors(folder, "adapter");
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
