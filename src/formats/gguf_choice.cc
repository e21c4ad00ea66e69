#include "formats/gguf_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kPartPattern = "-00000-of-00000";  // 0: any digit
constexpr size_t kMaxListed = 24;

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_part_suffix(std::string_view text) {
  for (size_t i = 0; i < kPartPattern.size(); ++i) {
    const bool fits = kPartPattern[i] == '0' ? is_digit(text[i]) : text[i] == kPartPattern[i];
    if (!fits) return false;
  }
  return true;
}

/// A path without extension, and what its name says of parts.
struct Stem {
  std::string text;
  int part = 1, count = 1;
};

Stem stem_of(std::string_view path) {
  path.remove_suffix(kExtension.size());
  Stem stem{std::string(path)};
  if (path.size() <= kPartPattern.size()) return stem;
  const std::string_view suffix = path.substr(path.size() - kPartPattern.size());
  if (!is_part_suffix(suffix)) return stem;
  stem.text = path.substr(0, path.size() - suffix.size());
  stem.part = std::stoi(std::string(suffix.substr(1, 5)));
  stem.count = std::stoi(std::string(suffix.substr(10, 5)));
  return stem;
}

/// Whether a word between separators names a type: Q4_K_M, IQ2_XS, TQ1_0, MXFP4, BF16, F16.
bool is_quant(std::string_view word) {
  for (const std::string_view whole : {"BF16", "F16", "F32", "FP16", "FP32"}) {
    if (word == whole) return true;
  }
  for (const std::string_view start : {"IQ", "TQ", "Q", "MXFP"}) {
    if (word.starts_with(start)) return word.size() > start.size() && is_digit(word[start.size()]);
  }
  return false;
}

/// The last word of a path, by "-", "." and "/", that names a type; with the "UD-" in front of it
/// that marks mixtures of types.
std::string quant_of(std::string_view stem) {
  const std::string text = upper(stem);
  size_t end = text.size();
  while (true) {
    const size_t separator = end == 0 ? std::string::npos : text.find_last_of("-./", end - 1);
    const size_t start = separator == std::string::npos ? 0 : separator + 1;
    const std::string word = text.substr(start, end - start);
    if (is_quant(word)) {
      const bool mixture = start >= 3 && text.compare(start - 3, 3, "UD-") == 0 &&
                           (start == 3 || text[start - 4] == '-' || text[start - 4] == '.' ||
                            text[start - 4] == '/');
      return mixture ? "UD-" + word : word;
    }
    if (separator == std::string::npos) return {};
    end = separator;
  }
}

bool is_model(std::string_view path) {
  if (path.size() <= kExtension.size() || upper(path).substr(path.size() - 5) != ".GGUF") {
    return false;
  }
  const std::string name = upper(path.substr(path.rfind('/') + 1));
  return !name.starts_with("MMPROJ") && !name.starts_with("IMATRIX");
}

std::string spelled(const std::string& repository, const GgufModel& model) {
  return model.quant.empty() ? model.parts.front() : repository + ":" + model.quant;
}

}  // namespace

std::vector<GgufModel> gguf_models(std::span<const std::string> paths) {
  // By stem and number of parts: the parts that are there.
  std::map<std::pair<std::string, int>, std::map<int, std::string>> found;
  for (const std::string& path : paths) {
    if (!is_model(path)) continue;
    const Stem stem = stem_of(path);
    found[{stem.text, stem.count}][stem.part] = path;
  }
  std::vector<GgufModel> models;
  for (const auto& [key, parts] : found) {
    const int count = key.second;
    const bool whole = count > 0 && parts.size() == static_cast<size_t>(count) &&
                       parts.begin()->first == 1 && parts.rbegin()->first == count;
    if (!whole) continue;
    GgufModel& model = models.emplace_back();
    model.quant = quant_of(key.first);
    for (const auto& [number, path] : parts) model.parts.push_back(path);
  }
  return models;
}

std::optional<GgufModel> choose_gguf(std::span<const GgufModel> models, const std::string& quant,
                                     const std::string& repository) {
  if (models.empty()) return std::nullopt;
  std::vector<std::string> tags = {upper(quant)};
  if (quant.empty()) tags = {"Q4_K_M", "Q8_0"};
  std::vector<GgufModel> fit;
  for (const std::string& tag : tags) {
    for (const GgufModel& model : models) {
      if (model.quant == tag) fit.push_back(model);
    }
    if (!fit.empty()) break;
  }
  if (fit.empty() && quant.empty()) fit.assign(models.begin(), models.end());
  if (fit.empty()) return std::nullopt;
  if (fit.size() == 1) return fit.front();
  std::vector<std::string> names;
  for (const GgufModel& model : fit) names.push_back(printable(spelled(repository, model)));
  // Tags that several files share tell nothing: then their paths.
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
    names.clear();
    for (const GgufModel& model : fit) names.push_back(printable(model.parts.front()));
  }
  const size_t more = names.size() > kMaxListed ? names.size() - kMaxListed : 0;
  names.resize(names.size() - more);
  fail_usage("{} has several GGUF models, name one: {}{}", repository, fmt::join(names, ", "),
             more ? fmt::format(" and {} more", more) : "");
}

}  // namespace orthrus
