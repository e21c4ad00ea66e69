#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace orthrus {

/// While it lives, Ctrl-C asks `token()` to stop instead of ending the program; a second one ends
/// it at once where `second_ends`. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool second_ends = true);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool interrupted() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  int pipe_[2];
  struct sigaction previous_;
  std::thread watcher_;  // a handler must not call request_stop(): it only writes to the pipe
};

}  // namespace orthrus
