#pragma once

#include <string>

namespace orthrus {

/// Keeps a folder to one process at a time, as long as it lives: an advisory lock on FOLDER/.lock,
/// which goes with the process however that ends; the empty file stays.
class FolderLock {
 public:
  /// Error(kUsage) where another process has the lock; Error(kInput) where the file cannot be made.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace orthrus
