#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

#include "hub/content_digest.h"

namespace orthrus {

/// A blob on its way: PATH.incomplete, which a later run goes on with, and the hash of what it
/// holds so far.
class BlobFile {
 public:
  /// Opens what an earlier run left, or begins. `what`: for messages. `content` (digest.h) and
  /// `size`: what it shall be in the end.
  BlobFile(std::string path, std::string what, std::string content, uint64_t size,
           const std::stop_token& stop);
  ~BlobFile();
  BlobFile(const BlobFile&) = delete;
  BlobFile& operator=(const BlobFile&) = delete;

  uint64_t held() const { return held_; }
  bool is_whole() const { return held_ == size_; }
  /// Error(kInput) where the disk is full, or it becomes more than `size`.
  void append(std::span<const std::byte> bytes);
  /// Drops what it holds.
  void restart();
  /// Checks the hash and gives the file its name in one step. Error(kInput) where it is another
  /// content: then it is removed.
  void finish();

 private:
  void hash_what_is_there(const std::stop_token& stop);
  [[noreturn]] void fail_system(const char* done) const;

  std::string path_, incomplete_, what_, content_;
  uint64_t size_, held_ = 0;
  ContentDigest digest_;
  int fd_;
};

/// Where a blob lies that is not whole yet.
std::string incomplete_path(const std::string& blob_path);

}  // namespace orthrus
