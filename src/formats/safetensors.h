#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "formats/tensor_source.h"

namespace orthrus {

/// One safetensors file or several behind an index (model.safetensors.index.json). Header length,
/// offsets, overlaps and shapes are checked against the file before anything is used.
class SafetensorsSource : public TensorSource {
 public:
  /// path: a .safetensors file, an index (*.safetensors.index.json), or a directory with
  /// model.safetensors or its index.
  explicit SafetensorsSource(const std::string& path);
  /// One file that lies in memory, which must outlive this; `name` is for messages.
  SafetensorsSource(std::span<const std::byte> bytes, const std::string& name);

  const TensorInfo* find(std::string_view name) const override;
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void drop(const TensorInfo& tensor) const override;
  std::vector<const MappedFile*> files() const override { return file_pointers(files_); }
  std::string path() const override { return path_; }
  std::string unreadable_type(std::string_view name) const override;
  /// `__metadata__` of the (first) file.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void read_index(const std::string& index_path);
  void read_file(const std::string& file);
  void read_bytes(std::span<const std::byte> bytes, const std::string& file);

  std::string path_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<std::string, std::string> unreadable_;  // name -> type
};

}  // namespace orthrus
