#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orthrus {
namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return ::fsync(fd) == 0;
}

}  // namespace

void check_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    fail("{}: cannot be written: not a regular file", path);
  }
}

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  check_replaceable(path);
  const std::string temporary = fmt::format("{}.tmp{}", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail("{}: cannot be written: {}", path, std::strerror(errno));
  const bool written = write_all(fd, bytes);
  int error = errno;
  const bool closed = ::close(fd) == 0;
  if (written && !closed) error = errno;
  if (written && closed) {
    if (::rename(temporary.c_str(), path.c_str()) == 0) return;
    error = errno;
  }
  ::unlink(temporary.c_str());
  fail("{}: cannot be written: {}", path, std::strerror(error));
}

void write_file_atomically(const std::string& path, const std::string& text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace orthrus
