#pragma once

#include <string>

namespace orthrus {

/// An advisory lock on a folder, for as long as this object, and any child process that was started
/// meanwhile, lives. It goes with the processes however they end and leaves nothing behind.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// False where another process has the lock, or the folder or its file system allows none.
  bool held() const { return held_; }
  /// Error(kUsage) where another process has it.
  void require() const;

 private:
  std::string folder_;
  int fd_;  // children inherit it
  bool held_ = false, taken_ = false;
};

}  // namespace orthrus
