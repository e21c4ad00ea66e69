#include "hub/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "hub/retries.h"

namespace orthrus {
namespace {

/// Whether the path still names the open file: who had the lock may have removed it on leaving.
bool is_same_file(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& what, const std::stop_token& stop,
                   PullObserver& observer) {
  bool told = false;
  while (true) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("{}: cannot be opened: {}", path, std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      if (is_same_file(fd_, path)) return;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      observer.on_notice(fmt::format("{}: no lock ({}): do not pull this model twice at once", path,
                                     std::strerror(errno)));
      return;
    }
    ::close(fd_);
    fd_ = -1;
    if (!told) observer.on_notice(what + ": another process fetches it: waiting");
    told = true;
    sleep_for(std::chrono::milliseconds(100), stop);
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace orthrus
