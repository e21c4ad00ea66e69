#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace orthrus {

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

bool stdout_has_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (!no_color || !*no_color);
}

void print(std::string_view text) {
  bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

void print_stderr(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

StatusLine::StatusLine(std::string_view what) {
  if (stderr_is_terminal()) print_stderr(fmt::format("{} ...", what));
}

StatusLine::~StatusLine() {
  if (stderr_is_terminal()) print_stderr("\r\x1b[K");
}

StdoutStreamer::StdoutStreamer(size_t prompt_tokens) {
  constexpr size_t kLongPrompt = 512;
  if (prompt_tokens > kLongPrompt) reading_.emplace("reading the prompt");
}

void StdoutStreamer::on_text(std::string_view text) {
  reading_.reset();
  print(text);
  line_open_ = text.back() != '\n';
}

void StdoutStreamer::end_line() {
  reading_.reset();
  if (line_open_) print("\n");
  line_open_ = false;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), started_(monotonic_seconds()) {}

void ProgressLine::update(double share) {
  int per_cent = static_cast<int>(share * 100);
  if (per_cent == shown_ || !stderr_is_terminal() || monotonic_seconds() - started_ < 1) return;
  shown_ = per_cent;
  print_stderr(fmt::format("\r{} {} %", what_, per_cent));
}

ProgressLine::~ProgressLine() {
  if (shown_ >= 0) print_stderr("\r\x1b[K");
}

std::string human_bytes(double bytes) {
  if (bytes < 1e4) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool border = (digits.size() - i) % 3 == 0 && i > 0 && digits[i - 1] != '-';
    if (border) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace orthrus
