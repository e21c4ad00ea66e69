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
  /// When the file, as it was opened, was last changed in any way; in nanoseconds since 1970.
  int64_t changed() const { return changed_; }

  /// All of the file will be read: the system then reads it in larger pieces and maps it by large
  /// pages, where it can.
  void expect_all() const;
  /// Brings the pages of `part` into memory, as far as the system can; reading them does so too,
  /// page by page.
  void fetch(std::span<const std::byte> part) const;

  /// Tells the kernel that the pages of `part` (inside bytes()) and those that came with them are
  /// not needed now, so that packed weights and their source are never resident together. Reading
  /// them again still works.
  void drop(std::span<const std::byte> part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int64_t changed_ = 0;
};

}  // namespace orthrus
