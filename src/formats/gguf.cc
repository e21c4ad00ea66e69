#include "formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "formats/gguf_names.h"
#include "formats/gguf_parser.h"
#include "formats/printable.h"
#include "formats/tensor_layout.h"

namespace orthrus {
namespace {

constexpr int kMaxParts = 1000;

template <typename T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "a boolean";
  if constexpr (std::is_same_v<T, int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, std::string_view>) return "a string";
  if constexpr (std::is_same_v<T, std::vector<bool>>) return "a list of booleans";
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return "a list of integers";
  if constexpr (std::is_same_v<T, std::vector<double>>) return "a list of numbers";
  if constexpr (std::is_same_v<T, std::vector<std::string_view>>) return "a list of strings";
}

}  // namespace

const GgufValue* GgufMetadata::find(std::string_view key) const {
  auto it = index_.find(std::string(key));
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

template <typename T>
std::optional<T> GgufMetadata::get(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  }
  const T* typed = std::get_if<T>(value);
  if (!typed) fail("GGUF metadata {} is not {}", printable(key), type_name<T>());
  return *typed;
}

template std::optional<bool> GgufMetadata::get(std::string_view) const;
template std::optional<int64_t> GgufMetadata::get(std::string_view) const;
template std::optional<double> GgufMetadata::get(std::string_view) const;
template std::optional<std::string_view> GgufMetadata::get(std::string_view) const;
template std::optional<std::vector<bool>> GgufMetadata::get(std::string_view) const;
template std::optional<std::vector<int64_t>> GgufMetadata::get(std::string_view) const;
template std::optional<std::vector<double>> GgufMetadata::get(std::string_view) const;
template std::optional<std::vector<std::string_view>> GgufMetadata::get(std::string_view) const;

std::vector<std::string> gguf_parts(const std::string& path) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  std::vector<std::string> single = {path};
  if (path.size() <= kPattern.size()) return single;
  const size_t start = path.size() - kPattern.size();
  const std::string_view tail = std::string_view(path).substr(start);
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool digit = tail[i] >= '0' && tail[i] <= '9';
    if (kPattern[i] == '0' ? !digit : tail[i] != kPattern[i]) return single;
  }
  const int part = std::stoi(std::string(tail.substr(1, 5)));
  const int count = std::stoi(std::string(tail.substr(10, 5)));
  if (part < 1 || part > count || count > kMaxParts) {
    fail("{}: part {} of {}, expected 1 to at most {} parts", path, part, count, kMaxParts);
  }
  std::vector<std::string> paths;
  for (int i = 1; i <= count; ++i) {
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", path.substr(0, start), i, count));
  }
  return paths;
}

GgufFile::GgufFile(const std::string& path) : path_(path) {
  for (const std::string& part : gguf_parts(path)) {
    parts_.push_back(std::make_unique<MappedFile>(part));
    add_part(parts_.back()->bytes(), part);
  }
  check_split(path);
}

GgufFile::GgufFile(std::span<const std::byte> bytes, const std::string& name) : path_(name) {
  add_part(bytes, name);
}

void GgufFile::add_part(std::span<const std::byte> bytes, const std::string& name) {
  const bool first = version_ == 0;
  GgufParser part(bytes, name);
  if (first) {
    version_ = part.version;
    metadata_ = std::move(part.metadata);
  }
  const std::string_view arch =
      metadata_.get<std::string_view>("general.architecture").value_or("");
  const bool interleaved = arch == "llama";
  std::vector<TensorInfo> added;
  for (GgufTensorEntry& entry : part.tensors) {
    TensorInfo info;
    info.name = hf_tensor_name(entry.name);
    std::optional<TensorType> type = tensor_type_from_ggml(entry.type);
    if (find(info.name) || !index_.emplace(info.name, tensors_.size() + added.size()).second) {
      fail("{}: tensor {} is there twice", name, printable(entry.name));
    }
    if (!type) {
      index_.erase(info.name);
      unreadable_[info.name] = ggml_type_name(entry.type);
      continue;
    }
    info.type = *type;
    info.shape.assign(entry.sizes.rbegin(), entry.sizes.rend());
    std::optional<uint64_t> size = tensor_bytes(*type, info.shape);
    if (!size) {
      fail("{}: tensor {}: its shape overflows or has rows that are not whole {} blocks", name,
           printable(entry.name), traits(*type).name);
    }
    if (*size > entry.data.size()) {
      fail("{}: truncated: tensor {} has {} bytes, {} are left in the file", name,
           printable(entry.name), *size, entry.data.size());
    }
    info.data = entry.data.first(static_cast<size_t>(*size));
    const RotaryRows rows = interleaved ? rotary_rows(info.name) : RotaryRows::kNone;
    if (rows != RotaryRows::kNone) info.interleaved_heads = rotary_heads(rows, info.shape[0]);
    added.push_back(std::move(info));
  }
  check_no_overlap(added, name);
  std::move(added.begin(), added.end(), std::back_inserter(tensors_));
}

int GgufFile::rotary_heads(RotaryRows rows, int64_t outputs) const {
  const int64_t heads = metadata_.get<int64_t>("llama.attention.head_count").value_or(0);
  const int64_t count =
      rows == RotaryRows::kQuery
          ? heads
          : metadata_.get<int64_t>("llama.attention.head_count_kv").value_or(heads);
  // A head's rows are pairs.
  if (count < 1 || count > outputs || outputs % (2 * count) != 0) {
    fail("{}: {} heads do not divide {} rows of q or k into pairs", path_, count, outputs);
  }
  return static_cast<int>(count);
}

void GgufFile::check_split(const std::string& path) const {
  const int64_t count = metadata_.get<int64_t>("split.count").value_or(0);
  if (count > 1 && static_cast<size_t>(count) != parts_.size()) {
    fail(
        "{}: one of {} parts of a split model, but its name does not end in "
        "\"-00001-of-{:05}.gguf\"",
        path, count, count);
  }
  const auto total = metadata_.get<int64_t>("split.tensors.count");
  const size_t found = tensors_.size() + unreadable_.size();
  if (total && *total > 0 && static_cast<size_t>(*total) != found) {
    fail("{}: {} tensors in all parts, expected {}", path, found, *total);
  }
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  auto it = index_.find(std::string(name));
  return it == index_.end() || it->second >= tensors_.size() ? nullptr : &tensors_[it->second];
}

std::string GgufFile::unreadable_type(std::string_view name) const {
  auto it = unreadable_.find(std::string(name));
  return it == unreadable_.end() ? "" : it->second;
}

void GgufFile::drop(const TensorInfo& tensor) const {
  for (const auto& part : parts_) {
    std::span<const std::byte> bytes = part->bytes();
    if (tensor.data.data() >= bytes.data() && tensor.data.data() < bytes.data() + bytes.size()) {
      part->drop(tensor.data);
    }
  }
}

}  // namespace orthrus
