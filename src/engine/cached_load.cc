#include "engine/cached_load.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "formats/digest.h"
#include "formats/json.h"
#include "model/packed_cache_header.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char* format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kBF16:
      return "bf16";
    case WeightFormat::kQ8:
      return "q8";
    case WeightFormat::kQ4:
      return "q4";
    case WeightFormat::kAuto:
      break;
  }
  return "auto";
}

const char* diffusion_name(LoadRequest::Diffusion diffusion) {
  switch (diffusion) {
    case LoadRequest::Diffusion::kCheckpoint:
      return "checkpoint";
    case LoadRequest::Diffusion::kAdapter:
      return "adapter";
    case LoadRequest::Diffusion::kCopy:
      return "copy";
    case LoadRequest::Diffusion::kNone:
      break;
  }
  return "none";
}

/// What is packed and how; with `state` also how large the files are and when they changed.
std::string description(const Checkpoint& checkpoint, const LoadRequest& request, bool state) {
  json files = json::array();
  const auto add = [&](const TensorSource& tensors) {
    for (const MappedFile* file : tensors.files()) {
      std::error_code error;
      const fs::path path = fs::canonical(file->path(), error);  // "" where it was removed since
      json entry = {{"path", path.string()}};
      if (state) {
        entry["bytes"] = file->bytes().size();
        entry["changed"] = file->changed();
      }
      files.push_back(std::move(entry));
    }
  };
  add(*checkpoint.tensors);
  if (request.adapter) add(*request.adapter->tensors);
  return json{{"weights", format_name(request.format)},
              {"draft_weights", format_name(request.draft_format.value_or(request.format))},
              {"diffusion", diffusion_name(request.diffusion)},
              {"files", files}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// For the eye: the model's name as a file name may have it.
std::string readable_name(const std::string& name) {
  constexpr size_t kMost = 60;
  std::string text = name.substr(0, kMost);
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '.' && c != '_'; }, '_');
  return text;
}

/// Whether the files of such a description are as they were then.
bool files_are_as_described(const std::string& key) {
  const json description = parse_json(key, "its key");
  for (const json& entry : description.at("files")) {
    const auto path = entry.at("path").get<std::string>();
    // A name that is no UTF-8 is not known in full.
    if (path.find("\uFFFD") != std::string::npos) continue;
    std::error_code error;
    if (!fs::exists(path, error) && !error) return false;
    const MappedFile file(path);
    if (entry.at("bytes") != file.bytes().size() || entry.at("changed") != file.changed()) {
      return false;
    }
  }
  return true;
}

/// Removes the caches of `folder` that no load can use again: their model's files have changed or
/// are gone. Whatever else lies there is left alone.
void remove_outdated(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kPackedCacheSuffix) || entry.is_symlink(error)) continue;
    std::string key;
    try {
      key = packed_cache_key(path);
    } catch (const Error&) {
      continue;  // no whole cache
    }
    bool usable = true;
    try {
      usable = files_are_as_described(key);
    } catch (const Error&) {
      continue;  // a file that is there and cannot be opened now says nothing
    } catch (const json::exception&) {
      continue;  // a key of another kind
    }
    if (usable || !fs::remove(entry.path(), error)) continue;
    spdlog::info("packed cache {} removed: the files of its model have changed or are gone", path);
  }
}

void write(const std::string& path, const std::string& key, const LoadedTensors& tensors,
           ThreadPool& pool) {
  try {
    fs::create_directories(fs::path(path).parent_path());
    write_packed_cache(path, key, tensors, pool);
    spdlog::info("packed weights written to {}", path);
    remove_outdated(fs::path(path).parent_path());
  } catch (const Error& error) {
    spdlog::warn("no packed cache: {}", error.what());
  } catch (const fs::filesystem_error& error) {
    spdlog::warn("no packed cache: {}: {}", path, error.code().message());
  }
}

}  // namespace

std::string packed_cache_path(const std::string& folder, const Checkpoint& checkpoint,
                              const LoadRequest& request) {
  constexpr size_t kDigits = 16;
  Digest digest;
  digest.add(description(checkpoint, request, false));
  return fmt::format("{}/{}-{}-{}{}", folder, readable_name(checkpoint.config.name),
                     format_name(request.format), digest.hex().substr(0, kDigits),
                     kPackedCacheSuffix);
}

Model load_cached_model(const std::string& folder, const Checkpoint& checkpoint,
                        const LoadRequest& request, ThreadPool& pool) {
  const std::string path = packed_cache_path(folder, checkpoint, request);
  const std::string key = description(checkpoint, request, true);
  LoadRequest with_cache = request;
  try {
    if (const auto loaded = read_packed_cache(path, key, pool)) {
      with_cache.loaded = &*loaded;
      return load_model(checkpoint, with_cache, pool);
    }
  } catch (const Error& error) {
    spdlog::info("packed cache, made anew: {}", error.what());
  }
  LoadedTensors record;
  with_cache.loaded = nullptr;
  with_cache.record = &record;
  Model model = load_model(checkpoint, with_cache, pool);
  write(path, key, record, pool);
  return model;
}

}  // namespace orthrus
