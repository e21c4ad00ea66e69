#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orthrus {
namespace {

constexpr size_t kMaxLine = 16 << 20;

}  // namespace

LineReader::Status LineReader::fill() {
  pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupts_.read_end(), POLLIN, 0}};
  while (::poll(waits, 2, -1) < 0) {
    if (errno != EINTR) fail("stdin: cannot wait: {}", std::strerror(errno));
  }
  char bytes[4096];
  if (waits[1].revents) {
    [[maybe_unused]] ssize_t ignored = ::read(interrupts_.read_end(), bytes, 1);
    return Status::kInterrupted;
  }
  ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count < 0) fail("stdin: cannot read: {}", std::strerror(errno));
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
