#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

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

InterruptGuard::InterruptGuard(bool second_ends) {
  ORTHRUS_CHECK(::pipe2(pipe_, O_CLOEXEC) == 0);
  g_pipe = pipe_[1];
  watcher_ = std::thread([this] {
    char byte = 0;
    while (::read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (byte == 'i') source_.request_stop();
  });
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART | (second_ends ? static_cast<int>(SA_RESETHAND) : 0);
  ::sigaction(SIGINT, &action, &previous_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &previous_, nullptr);
  char byte = 'q';
  [[maybe_unused]] ssize_t written = ::write(pipe_[1], &byte, 1);
  watcher_.join();
  g_pipe = -1;
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

}  // namespace orthrus
