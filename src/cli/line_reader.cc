#include "cli/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace orthrus {
namespace {

constexpr size_t kMaxLine = 16 << 20;

// Without SA_RESTART an interrupted read() returns; everything else should go on.
void on_interrupt(int flags, struct sigaction* previous) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = flags;
  ::sigaction(SIGINT, &action, previous);
}

}  // namespace

LineReader::LineReader() { on_interrupt(SA_RESTART, &previous_); }
LineReader::~LineReader() { ::sigaction(SIGINT, &previous_, nullptr); }

LineReader::Status LineReader::fill() {
  char bytes[4096];
  on_interrupt(0, nullptr);
  ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  const int error = errno;
  on_interrupt(SA_RESTART, nullptr);
  if (count < 0) {
    if (error == EINTR) return Status::kInterrupted;
    fail("stdin: cannot read: {}", std::strerror(error));
  }
  at_end_ = count == 0;
  buffer_.append(bytes, static_cast<size_t>(count));
  if (buffer_.size() > kMaxLine) fail("stdin: a line of over {} bytes", kMaxLine);
  return Status::kLine;
}

LineReader::Status LineReader::read(std::string& line) {
  size_t newline;
  while ((newline = buffer_.find('\n')) == std::string::npos && !at_end_) {
    if (fill() == Status::kInterrupted) {
      buffer_.clear();
      return Status::kInterrupted;
    }
  }
  if (newline == std::string::npos && buffer_.empty()) {
    at_end_ = false;  // a terminal can go on after Ctrl-D
    return Status::kEnd;
  }
  line = buffer_.substr(0, newline);
  buffer_.erase(0, newline == std::string::npos ? newline : newline + 1);
  return Status::kLine;
}

}  // namespace orthrus
