#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/error.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kMostLinks = 40;

[[noreturn]] void refuse(const std::string& path) {
  fail("{}: cannot be written: not a regular file", path);
}

/// Where a path leads through symbolic links: the file is replaced there, and the links stay.
/// /dev/stdout and the like lead to open files, whose names must not be taken from them.
std::string followed(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; links <= kMostLinks; ++links) {
    const std::string text = fs::absolute(at, error).lexically_normal().string();
    if (text.starts_with("/dev/") || text.starts_with("/proc/")) refuse(path);
    if (!fs::is_symlink(at, error)) return at.string();
    const fs::path target = fs::read_symlink(at, error);
    at = at.parent_path() / target;  // an absolute one is taken as it is
  }
  fail("{}: cannot be written: too many symbolic links", path);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(followed(path)) {
  struct stat old {};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) refuse(path);
  // A name of chance: processes in containers have the same number.
  temporary_ = fmt::format("{}.{:08x}.tmp", path_, std::random_device()());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_write();
  if (replaces) ::fchmod(fd_, old.st_mode & 07777);  // may be another's, who must not read it
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) return write(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write();
  ::close(fd_);  // after fsync it has nothing left to say
  fd_ = -1;
}

void AtomicFile::flush() {
  write(buffer_);
  buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_write();
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::fail_write() { fail("{}: cannot be written: {}", path_, std::strerror(errno)); }

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.append(bytes);
  file.commit();
}

void write_file_atomically(const std::string& path, const std::string& text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace orthrus
