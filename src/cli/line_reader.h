#pragma once

#include <string>

#include "cli/interrupt.h"

namespace orthrus {

/// Reads lines from stdin for a prompt that Ctrl-C only cancels: while it lives an interrupt does
/// not end the program, and makes a waiting read() return kInterrupted. One at a time.
class LineReader {
 public:
  LineReader() = default;
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  enum class Status { kLine, kEnd, kInterrupted };
  /// The next line without its newline; the last line may lack one.
  Status read(std::string& line);

 private:
  Status fill();
  std::string buffer_;
  bool at_end_ = false;
  InterruptPipe interrupts_;
};

}  // namespace orthrus
