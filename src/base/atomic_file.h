#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace orthrus {

/// A file that is written front to back under a temporary name beside `path`; commit() flushes it
/// to disk and renames it: `path` is as it was or complete, never in between. Where it is a
/// symbolic link, this goes for what it leads to. A full disk or an exception leaves no temporary
/// file. Errors are Error(kInput) naming the path, which must not be a device or the like.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::span<const std::byte> bytes);
  void commit();

 private:
  void flush();
  void write(std::span<const std::byte> bytes);
  [[noreturn]] void fail_write();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// The whole file at once.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, const std::string& text);

}  // namespace orthrus
