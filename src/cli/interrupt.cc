#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace orthrus {
namespace {

std::atomic<int> g_pipe{-1};  // where the handler writes; handlers take no arguments

void on_interrupt(int) {
  int saved = errno;
  char byte = 'i';
  [[maybe_unused]] ssize_t written = ::write(g_pipe.load(), &byte, 1);
  errno = saved;
}

}  // namespace

InterruptPipe::InterruptPipe(int extra_flags) {
  ORTHRUS_CHECK(::pipe2(ends_, O_CLOEXEC) == 0);
  outer_ = g_pipe.exchange(ends_[1]);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART | extra_flags;
  ::sigaction(SIGINT, &action, &previous_);
}

InterruptPipe::~InterruptPipe() {
  restore();
  ::close(ends_[0]);
  ::close(ends_[1]);
}

void InterruptPipe::put(char byte) {
  [[maybe_unused]] ssize_t written = ::write(ends_[1], &byte, 1);
}

void InterruptPipe::restore() {
  if (!installed_) return;
  g_pipe = outer_;
  ::sigaction(SIGINT, &previous_, nullptr);
  installed_ = false;
}

InterruptGuard::InterruptGuard(bool second_ends)
    : pipe_(second_ends ? static_cast<int>(SA_RESETHAND) : 0) {
  try {
    watcher_ = std::thread([this] {
      char byte = 0;
      while (::read(pipe_.read_end(), &byte, 1) < 0 && errno == EINTR) {
      }
      if (byte == 'i') source_.request_stop();
    });
  } catch (const std::system_error& error) {
    throw Error(
        ErrorKind::kInternal,
        fmt::format("cannot start the thread that waits for Ctrl-C: {}", error.code().message()));
  }
}

InterruptGuard::~InterruptGuard() {
  pipe_.restore();
  pipe_.put('q');
  watcher_.join();
}

}  // namespace orthrus
