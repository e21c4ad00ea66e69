#include "trainer/fit/stop_signals.h"

namespace orthrus::train {
namespace {

// A handler may touch nothing else.
volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) { stop_requested = 1; }

}  // namespace

StopSignals::StopSignals() {
  stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::requested() const { return stop_requested != 0; }

}  // namespace orthrus::train
