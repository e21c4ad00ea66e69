#include "cli/pull_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "cli/terminal.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr double kScreenSeconds = 0.1, kLogSeconds = 30;
constexpr double kRateWindow = 10;
constexpr double kRateSeconds = 1;  // a rate of less time says nothing

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string clock_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 359'999.0));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_text(const std::string& file, uint64_t done, uint64_t total, double rate) {
  std::string text =
      fmt::format("{}  {} of {}", printable(file), human_bytes(static_cast<double>(done)),
                  human_bytes(static_cast<double>(total)));
  if (total > 0)
    text += fmt::format("  {:.0f} %", 1e2 * static_cast<double>(done) / static_cast<double>(total));
  if (rate <= 0) return text;
  return text + fmt::format("  {}/s  {} left", human_bytes(rate),
                            clock_time(static_cast<double>(total - std::min(done, total)) / rate));
}

void PullProgress::clear() {
  if (on_screen_) print_stderr("\r\x1b[K");
  on_screen_ = false;
}

PullProgress::~PullProgress() { clear(); }

void PullProgress::on_notice(const std::string& text) {
  clear();
  spdlog::info("{}", text);
}

double PullProgress::rate(const std::string& file, uint64_t done, double now) {
  // What an earlier run left of a file is no transfer, nor is a file that begins anew.
  if (file != file_ || (!samples_.empty() && done < samples_.back().second)) samples_.clear();
  file_ = file;
  if (samples_.empty() || now - samples_.back().first >= kScreenSeconds) {
    samples_.emplace_back(now, done);
  }
  while (now - samples_.front().first > kRateWindow) samples_.pop_front();
  const auto [since, before] = samples_.front();
  return now - since < kRateSeconds ? 0 : static_cast<double>(done - before) / (now - since);
}

void PullProgress::on_progress(const std::string& file, uint64_t done, uint64_t total) {
  const double now = monotonic_seconds();
  const double bytes_per_second = rate(file, done, now);
  if (shown_ < 0) shown_ = now;
  const bool screen = stderr_is_terminal();
  if (now - shown_ < (screen ? kScreenSeconds : kLogSeconds)) return;
  shown_ = now;
  std::string text = progress_text(file, done, total, bytes_per_second);
  if (!screen) {
    spdlog::info("{}", text);
    return;
  }
  text.resize(std::min(text.size(), terminal_columns() - 1));
  print_stderr("\r" + text + "\x1b[K");
  on_screen_ = true;
}

}  // namespace orthrus
