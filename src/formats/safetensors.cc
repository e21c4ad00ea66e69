#include "formats/safetensors.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "formats/file_exists.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "formats/tensor_layout.h"

namespace orthrus {
namespace {

using nlohmann::json;

// A parsed tree takes up to some 20 times its text: these keep it to some 400 MB. A header of 16
// MiB describes over 100,000 tensors.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr size_t kMaxIndexBytes = size_t{16} << 20;
constexpr size_t kMaxDimensions = 8;
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

std::optional<TensorType> readable_type(std::string_view name) {
  if (name == "F32") return TensorType::kF32;
  if (name == "F16") return TensorType::kF16;
  if (name == "BF16") return TensorType::kBF16;
  if (name == "I8") return TensorType::kI8;
  return std::nullopt;
}

int64_t size_from(const json& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) {
    fail("{}: a size or offset is not a whole number from 0 to 2^63-1", where);
  }
  return value.get<int64_t>();
}

std::vector<int64_t> sizes_from(const json& entry, const char* key, const std::string& where) {
  auto it = entry.find(key);
  if (it == entry.end() || !it->is_array()) fail("{}: no list \"{}\"", where, key);
  std::vector<int64_t> sizes;
  for (const json& value : *it) sizes.push_back(size_from(value, where));
  return sizes;
}

/// The header is read entry by entry and each is dropped once used: its tree never exists as a
/// whole, so memory stays near that of the tensor table.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> data, const std::string& file)
      : data_(data), file_(file) {}

  void read(std::string_view header) {
    auto on_event = [this](int depth, json::parse_event_t event, json& value) {
      return this->on_event(depth, event, value);
    };
    try {
      json rest = json::parse(header, on_event);
      if (!rest.is_object()) fail("{}: the header is not a JSON object", file_);
    } catch (const json::parse_error& error) {
      fail("{}: the header is not valid JSON (at byte {})", file_, error.byte);
    } catch (const json::exception&) {
      fail("{}: the header is not valid JSON (a number out of range)", file_);
    }
  }

  std::map<std::string, std::string> metadata;
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, std::string>> unreadable;

 private:
  /// Depth of the top object's keys is 1, of a tensor's lists 3. Returns whether to keep `value`.
  bool on_event(int depth, json::parse_event_t event, json& value) {
    if (depth > 2 &&
        (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start)) {
      fail("{}: the header is nested deeper than a tensor table", file_);
    }
    if (event == json::parse_event_t::array_start) elements_ = 0;
    if (event == json::parse_event_t::value && depth > 2 && ++elements_ > kMaxDimensions) {
      fail("{}: tensor {} has more than {} dimensions", file_, printable(name_), kMaxDimensions);
    }
    if (event == json::parse_event_t::key && depth == 1) {
      name_ = value.get<std::string>();
      if (!seen_.insert(name_).second) {
        fail("{}: {} stands in the header twice", file_, printable(name_));
      }
    }
    if (event == json::parse_event_t::object_end && depth == 1) {
      name_ == "__metadata__" ? add_metadata(value) : add_tensor(value);
      return false;
    }
    if (depth == 1 &&
        (event == json::parse_event_t::value || event == json::parse_event_t::array_end)) {
      fail("{}: the entry {} is not an object", file_, printable(name_));
    }
    return true;
  }

  void add_metadata(const json& entries) {
    for (const auto& [key, value] : entries.items()) {
      if (!value.is_string()) fail("{}: metadata {} is not a string", file_, printable(key));
      metadata[key] = value.get<std::string>();
    }
  }

  void add_tensor(const json& entry) {
    const std::string where = fmt::format("{}: tensor {}", file_, printable(name_));
    auto dtype = entry.find("dtype");
    if (dtype == entry.end() || !dtype->is_string()) fail("{}: no \"dtype\"", where);
    const std::string type_name = dtype->get<std::string>();
    TensorInfo info;
    info.name = name_;
    info.shape = sizes_from(entry, "shape", where);
    std::vector<int64_t> offsets = sizes_from(entry, "data_offsets", where);
    if (offsets.size() != 2 || offsets[0] > offsets[1] ||
        static_cast<uint64_t>(offsets[1]) > data_.size()) {
      fail("{}: its bytes are not within the {} bytes of data in the file", where, data_.size());
    }
    std::optional<TensorType> type = readable_type(type_name);
    if (!type) {
      unreadable.emplace_back(name_, printable(type_name));
      return;
    }
    info.type = *type;
    std::optional<uint64_t> bytes = tensor_bytes(*type, info.shape);
    const uint64_t found = static_cast<uint64_t>(offsets[1] - offsets[0]);
    if (!bytes) fail("{}: the size of its shape overflows", where);
    if (*bytes != found) {
      fail("{}: {} bytes in the file, expected {} for its shape and type {}", where, found, *bytes,
           type_name);
    }
    info.data = data_.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(found));
    tensors.push_back(std::move(info));
  }

  std::span<const std::byte> data_;
  const std::string& file_;
  std::string name_;  // of the top-level entry being read
  std::set<std::string> seen_;
  size_t elements_ = 0;
};

}  // namespace

SafetensorsSource::SafetensorsSource(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.ends_with(kIndexSuffix)) {
    read_index(path);
  } else if (!fs::is_directory(path, ignored)) {
    read_file(path);
  } else if (file_exists(path + "/model.safetensors.index.json")) {
    read_index(path + "/model.safetensors.index.json");
  } else if (file_exists(path + "/model.safetensors")) {
    read_file(path + "/model.safetensors");
  } else {
    fail("{}: neither model.safetensors nor model.safetensors.index.json", path);
  }
}

SafetensorsSource::SafetensorsSource(std::span<const std::byte> bytes, const std::string& name)
    : path_(name) {
  read_bytes(bytes, name);
}

void SafetensorsSource::read_index(const std::string& index_path) {
  json index = read_json_file(index_path, kMaxIndexBytes);
  auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    fail("{}: no \"weight_map\"", index_path);
  }
  std::set<std::string> files;
  for (const auto& [name, file] : map->items()) {
    // A shard lies beside its index: no path leads out of the directory.
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos) {
      fail("{}: the file of tensor {} is not a plain file name", index_path, printable(name));
    }
    files.insert(file.get<std::string>());
  }
  const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();
  for (const std::string& file : files) read_file((folder / file).string());
  for (const auto& [name, file] : map->items()) {
    if (!find(name) && !unreadable_.contains(name)) {
      fail("{}: tensor {} is not in {}, where the index says it is", index_path, printable(name),
           printable(file.get<std::string>()));
    }
  }
}

void SafetensorsSource::read_file(const std::string& file) {
  files_.push_back(std::make_unique<MappedFile>(file));
  read_bytes(files_.back()->bytes(), file);
}

void SafetensorsSource::read_bytes(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < 8) fail("{}: {} bytes, too short for a safetensors file", file, bytes.size());
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(bytes[i]);
  if (length > kMaxHeaderBytes) {
    fail("{}: not a safetensors file (header of {} bytes, expected at most {})", file, length,
         kMaxHeaderBytes);
  }
  if (length > bytes.size() - 8) {
    fail("{}: header of {} bytes in a file of {}: truncated or not a safetensors file", file,
         length, bytes.size());
  }
  HeaderReader header(bytes.subspan(8 + length), file);
  header.read({reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<size_t>(length)});
  check_no_overlap(header.tensors, file);
  if (tensors_.empty()) metadata_ = std::move(header.metadata);
  for (auto& [name, type] : header.unreadable) unreadable_[name] = type;
  for (TensorInfo& tensor : header.tensors) {
    if (!index_.emplace(tensor.name, tensors_.size()).second) {
      fail("{}: tensor {} is in another file of this model too", file, printable(tensor.name));
    }
    tensors_.push_back(std::move(tensor));
  }
}

const TensorInfo* SafetensorsSource::find(std::string_view name) const {
  auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::string SafetensorsSource::unreadable_type(std::string_view name) const {
  auto it = unreadable_.find(std::string(name));
  return it == unreadable_.end() ? "" : it->second;
}

void SafetensorsSource::drop(const TensorInfo& tensor) const {
  for (const auto& file : files_) {
    std::span<const std::byte> bytes = file->bytes();
    if (tensor.data.data() >= bytes.data() && tensor.data.data() < bytes.data() + bytes.size()) {
      file->drop(tensor.data);
    }
  }
}

}  // namespace orthrus
