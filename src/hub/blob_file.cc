#include "hub/blob_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace orthrus {

std::string incomplete_path(const std::string& blob_path) { return blob_path + ".incomplete"; }

BlobFile::BlobFile(std::string path, std::string what, std::string content, uint64_t size,
                   const std::stop_token& stop)
    : path_(std::move(path)),
      incomplete_(incomplete_path(path_)),
      what_(std::move(what)),
      content_(std::move(content)),
      size_(size),
      digest_(content_, size),
      fd_(::open(incomplete_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail_system("opened");
  try {
    hash_what_is_there(stop);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

BlobFile::~BlobFile() { ::close(fd_); }

void BlobFile::hash_what_is_there(const std::stop_token& stop) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail_system("read");
  if (static_cast<uint64_t>(status.st_size) > size_) restart();
  std::vector<std::byte> buffer(1 << 20);
  while (!stop.stop_requested()) {
    const ssize_t read = ::read(fd_, buffer.data(), buffer.size());
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) fail_system("read");
    if (read == 0) return;
    digest_.add(std::span(buffer).first(static_cast<size_t>(read)));
    held_ += static_cast<uint64_t>(read);
  }
  fail("interrupted");
}

void BlobFile::append(std::span<const std::byte> bytes) {
  if (bytes.size() > size_ - held_) {
    fail("{}: the server sends more than the {} bytes that the hub lists", what_, size_);
  }
  digest_.add(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_system("written");
    bytes = bytes.subspan(static_cast<size_t>(written));
    held_ += static_cast<uint64_t>(written);
  }
}

void BlobFile::restart() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) fail_system("written");
  digest_.reset();
  held_ = 0;
}

void BlobFile::finish() {
  const std::string found = digest_.hex();
  if (found != content_) {
    ::unlink(incomplete_.c_str());
    fail("{}: its {} is {}, expected {}: what was fetched is removed", what_, digest_.kind(), found,
         content_);
  }
  if (::fsync(fd_) != 0) fail_system("written");
  if (::rename(incomplete_.c_str(), path_.c_str()) != 0) fail_system("renamed");
}

void BlobFile::fail_system(const char* done) const {
  fail("{}: cannot be {}: {}", incomplete_, done, std::strerror(errno));
}

}  // namespace orthrus
