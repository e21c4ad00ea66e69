#include "hub/selection.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "formats/gguf_choice.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr size_t kMaxListed = 24;

// What the engine opens in a Hugging Face folder beside its weights.
constexpr const char* kSmallFiles[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "chat_template.jinja",
                                       "adapter.safetensors",
                                       "adapter.safetensors.index.json",
                                       "adapter-*-of-*.safetensors"};

using Paths = std::set<std::string>;

bool matches_any(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, path); });
}

/// Names at the top of the repository that match, which the engine looks for there only.
void add_matching(const Paths& all, const std::string& pattern, Paths& out) {
  for (const std::string& path : all) {
    if (path.find('/') == std::string::npos && matches_pattern(pattern, path)) out.insert(path);
  }
}

/// model.safetensors, else the index and its parts: both stand for the same weights.
Paths weights_of(const Paths& all) {
  if (all.contains("model.safetensors")) return {"model.safetensors"};
  if (!all.contains("model.safetensors.index.json")) return {};
  Paths out = {"model.safetensors.index.json"};
  add_matching(all, "model*-of-*.safetensors", out);
  return out.size() > 1 ? out : Paths();
}

std::string tags_of(const std::vector<GgufModel>& models) {
  std::vector<std::string> tags;
  for (const GgufModel& model : models) {
    if (!model.quant.empty()) tags.push_back(printable(model.quant));
  }
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (tags.empty()) return "none";
  const bool more = tags.size() > kMaxListed;
  tags.resize(std::min(tags.size(), kMaxListed));
  return fmt::format("{}{}", fmt::join(tags, ", "), more ? ", ..." : "");
}

Paths choose_gguf_files(const Paths& all, const HubName& name, Selection& selection) {
  const std::vector<std::string> paths(all.begin(), all.end());
  const auto models = gguf_models(paths);
  const auto chosen = choose_gguf(models, name.quant, name.repository);
  if (!chosen && !name.quant.empty()) {
    fail("{}: no GGUF model of type {}; it has: {}", name.repository, name.quant, tags_of(models));
  }
  if (!chosen) return {};
  if (name.quant.empty() && models.size() > 1) {
    selection.note = fmt::format("{} of {} ({}:TYPE takes another)", chosen->quant, tags_of(models),
                                 name.repository);
  }
  selection.opens = chosen->parts.front();
  return {chosen->parts.begin(), chosen->parts.end()};
}

Paths needed_files(const Paths& all, const HubName& name, Selection& selection) {
  Paths files = name.quant.empty() ? weights_of(all) : Paths();
  const bool whole_model = !files.empty() && all.contains("config.json");
  const bool adapter =
      all.contains("adapter.safetensors") || all.contains("adapter.safetensors.index.json");
  if (!name.quant.empty() || (!whole_model && !adapter)) {
    files = choose_gguf_files(all, name, selection);
    if (!files.empty()) return files;
    fail(
        "{}: neither config.json with model.safetensors (or its parts), nor GGUF files, nor an "
        "adapter: nothing that orthrus reads (--include fetches any file)",
        name.repository);
  }
  if (whole_model && !all.contains("tokenizer.json")) {
    fail("{}: no tokenizer.json, without which orthrus cannot run it (--include fetches any file)",
         name.repository);
  }
  for (const char* pattern : kSmallFiles) add_matching(all, pattern, files);
  return files;
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& path) {
  const std::string whole = pattern.ends_with('/') ? pattern + "*" : pattern;
  return ::fnmatch(whole.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
}

Selection select_files(const HubListing& listing, const HubName& name,
                       const std::vector<std::string>& include,
                       const std::vector<std::string>& exclude) {
  Selection selection;
  Paths all;
  for (const HubFile& file : listing.files) {
    if (!matches_any(exclude, file.path)) all.insert(file.path);
  }
  if (!include.empty()) std::erase_if(all, [&](const auto& p) { return !matches_any(include, p); });
  if (all.empty()) {
    fail("{}: none of its {} files{}", name.repository, listing.files.size(),
         include.empty() && exclude.empty() ? "" : " fits --include and --exclude");
  }
  Paths chosen = all;
  if (include.empty()) {
    chosen = needed_files(all, name, selection);
  } else if (!name.quant.empty()) {
    chosen = choose_gguf_files(all, name, selection);
  }
  for (const HubFile& file : listing.files) {
    if (chosen.contains(file.path)) {
      selection.files.push_back(file);
    } else {
      ++selection.left_out;
      selection.left_out_bytes += file.size.value_or(0);
    }
  }
  return selection;
}

}  // namespace orthrus
