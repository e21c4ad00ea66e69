#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace orthrus {

/// A read-only memory map of a whole regular file. Move-only; immutable, so safe to read from any
/// thread. Errors (missing, a directory, empty, unreadable) throw Error(kInput) naming the path.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Tells the kernel that the pages of `part` (inside bytes()) are not needed again, so that
  /// packed weights and their source are never resident together. Reading them again still works.
  void drop(std::span<const std::byte> part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace orthrus
