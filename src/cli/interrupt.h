#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace orthrus {

/// While it lives, Ctrl-C writes the byte 'i' to a pipe and does nothing else. They nest: the
/// youngest gets the bytes.
class InterruptPipe {
 public:
  /// extra_flags: for sigaction, beside SA_RESTART.
  explicit InterruptPipe(int extra_flags = 0);
  ~InterruptPipe();
  InterruptPipe(const InterruptPipe&) = delete;
  InterruptPipe& operator=(const InterruptPipe&) = delete;

  int read_end() const { return ends_[0]; }
  void put(char byte);
  /// Ctrl-C does again what it did before.
  void restore();

 private:
  int ends_[2];
  int outer_;  // where the bytes went before
  struct sigaction previous_;
  bool installed_ = true;
};

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
  InterruptPipe pipe_;
  std::thread watcher_;  // a handler must not call request_stop(): it only writes to the pipe
};

}  // namespace orthrus
