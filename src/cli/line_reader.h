#pragma once

#include <csignal>
#include <string>

namespace orthrus {

/// Reads lines from stdin for a prompt that Ctrl-C only cancels: while it lives an interrupt does
/// not end the program, and makes a waiting read() return kInterrupted. One at a time.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  enum class Status { kLine, kEnd, kInterrupted };
  /// The next line without its newline; the last line may lack one.
  Status read(std::string& line);

 private:
  Status fill();
  std::string buffer_;
  bool at_end_ = false;
  struct sigaction previous_;
};

}  // namespace orthrus
