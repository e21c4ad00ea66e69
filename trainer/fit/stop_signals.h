#pragma once

#include <csignal>

namespace orthrus::train {

/// While it lives, SIGINT and SIGTERM ask for a stop at the next occasion; a second one ends the
/// program at once, as always. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const;

 private:
  struct sigaction interrupt_, terminate_;
};

}  // namespace orthrus::train
