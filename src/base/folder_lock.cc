#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orthrus {

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("{}: cannot be written: {}", path, std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(fd_);
  if (error == EWOULDBLOCK) fail_usage("{}: another process is at work in it", folder);
  fail("{}: cannot be locked: {}", path, std::strerror(error));
}

FolderLock::~FolderLock() { ::close(fd_); }

}  // namespace orthrus
