#pragma once

#include <stop_token>
#include <string>

#include "hub/observer.h"

namespace orthrus {

/// The lock file that huggingface_hub takes while it writes a blob, for as long as this object
/// lives. It goes with the process however that ends.
class FileLock {
 public:
  /// Waits while another process has it, with one notice about `what`. Goes on without a lock, with
  /// a notice, where the file system has none. Error(kInput) where the file cannot be made, or
  /// where `stop` was asked for.
  FileLock(const std::string& path, const std::string& what, const std::stop_token& stop,
           PullObserver& observer);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace orthrus
