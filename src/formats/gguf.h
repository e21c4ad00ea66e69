#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "formats/gguf_names.h"
#include "formats/tensor_source.h"

namespace orthrus {

/// Metadata of a GGUF file. Integers of every width are int64 (a u64 over 2^63 is an error),
/// floats are double. Strings point into the mapped file.
using GgufValue =
    std::variant<bool, int64_t, double, std::string_view, std::vector<bool>, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string_view>>;

class GgufMetadata {
 public:
  /// nullptr where the key is absent.
  const GgufValue* find(std::string_view key) const;
  /// The value of that key in that type; nullopt where absent, Error(kInput) where of another type.
  /// get<double> also takes an integer.
  template <typename T>
  std::optional<T> get(std::string_view key) const;
  const std::vector<std::pair<std::string, GgufValue>>& entries() const { return entries_; }
  /// Type number and value of entry i as they lie in the file.
  std::span<const std::byte> encoded(size_t i) const { return encoded_[i]; }

 private:
  friend class GgufParser;
  std::vector<std::pair<std::string, GgufValue>> entries_;
  std::vector<std::span<const std::byte>> encoded_;
  std::unordered_map<std::string, size_t> index_;
};

/// The paths of all parts of a "...-00002-of-00003.gguf", or that path alone.
std::vector<std::string> gguf_parts(const std::string& path);

/// A GGUF model (version 2 or 3, little endian), single or split ("-00001-of-00003.gguf": give any
/// part, all are opened). Tensor names are translated to Hugging Face names; other names stay as
/// they are. Sizes are checked before memory is asked for: a hostile file costs no more than its
/// own length.
class GgufFile : public TensorSource {
 public:
  explicit GgufFile(const std::string& path);
  /// One part that lies in memory, which must outlive this; `name` is for messages.
  GgufFile(std::span<const std::byte> bytes, const std::string& name);

  const GgufMetadata& metadata() const { return metadata_; }
  uint32_t version() const { return version_; }
  const TensorInfo* find(std::string_view name) const override;
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void drop(const TensorInfo& tensor) const override;
  std::vector<const MappedFile*> files() const override { return file_pointers(parts_); }
  std::string path() const override { return path_; }
  std::string unreadable_type(std::string_view name) const override;
  /// Names and ggml types of all such tensors.
  const std::unordered_map<std::string, std::string>& unreadable() const { return unreadable_; }

 private:
  void add_part(std::span<const std::byte> bytes, const std::string& name);
  int rotary_heads(RotaryRows rows, int64_t outputs) const;
  void check_split(const std::string& path) const;

  std::string path_;
  uint32_t version_ = 0;
  std::vector<std::unique_ptr<MappedFile>> parts_;
  GgufMetadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<std::string, std::string> unreadable_;  // name -> ggml type
};

}  // namespace orthrus
