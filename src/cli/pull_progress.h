#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "hub/observer.h"

namespace orthrus {

/// Shows a pull on stderr: on a terminal one line that changes (bytes, rate, time left), elsewhere
/// a line every half a minute.
class PullProgress : public PullObserver {
 public:
  PullProgress() = default;
  ~PullProgress() override;
  PullProgress(const PullProgress&) = delete;
  PullProgress& operator=(const PullProgress&) = delete;

  void on_notice(const std::string& text) override;
  void on_progress(const std::string& file, uint64_t done, uint64_t total) override;
  /// Takes the line away.
  void clear();

 private:
  /// Bytes a second of the last few; 0 while that is not known.
  double rate(const std::string& file, uint64_t done, double now);

  std::string file_;
  std::deque<std::pair<double, uint64_t>> samples_;  // of this file: when, and bytes
  double shown_ = -1;                                // when the last line was written
  bool on_screen_ = false;
};

/// "2:05" or "1:02:05" for a number of seconds.
std::string clock_time(double seconds);

/// "model.safetensors  12.3 MB of 1.20 GB  1 %  5.1 MB/s  3:53 left". `rate` in bytes a second, 0
/// while it is not known.
std::string progress_text(const std::string& file, uint64_t done, uint64_t total, double rate);

}  // namespace orthrus
