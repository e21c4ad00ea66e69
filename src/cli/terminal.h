#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orthrus/language_model.h"

namespace orthrus {

bool stdout_is_terminal();
bool stderr_is_terminal();

/// Whether to colour what goes to stdout: a terminal, and NO_COLOR is not set.
bool stdout_has_colour();

/// Writes to stdout at once. Error(kInternal) where that is not possible, e.g. on a full disk.
void print(std::string_view text);

/// Writes to stderr as far as that is possible: there is no place to complain about stderr.
void print_stderr(std::string_view text) noexcept;

/// A line on stderr, on a terminal only, while something goes on whose progress is not known.
class StatusLine {
 public:
  explicit StatusLine(std::string_view what);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
};

/// Streams an answer to stdout, and remembers how it ended.
class StdoutStreamer : public Streamer {
 public:
  /// Says that it reads the prompt where that takes a while.
  explicit StdoutStreamer(size_t prompt_tokens);
  void on_text(std::string_view text) override;
  /// Ends the line that the answer left open.
  void end_line();

 private:
  std::optional<StatusLine> reading_;
  bool line_open_ = true;  // an empty answer is an empty line
};

/// A percentage on stderr while something long goes on: only on a terminal, and only after a
/// second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// share: 0 to 1.
  void update(double share);

 private:
  std::string what_;
  double started_;
  int shown_ = -1;  // per cent on screen
};

/// Seconds of a monotonic clock.
double monotonic_seconds();

/// "12.3 MB", in powers of ten as file sizes are given; exact below 10 kB.
std::string human_bytes(double bytes);

/// With thousands separators: 98,362,432.
std::string grouped(int64_t number);

}  // namespace orthrus
