#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "hub/http.h"
#include "hub/observer.h"

namespace orthrus {

/// Sleeps, but no longer than until `stop` is asked for: then Error(kInput).
void sleep_for(std::chrono::milliseconds time, const std::stop_token& stop);

/// Tries of one thing: waits between them, half a second at first, twice as long each time, or as
/// long as the server asks.
class Retries {
 public:
  Retries(int most, std::string what, std::stop_token stop, PullObserver& observer);

  /// Whether another try may help: a connection that was cut, a server that is busy or failed, a
  /// storage host that refuses (its signed address has expired).
  static bool worth_it(const HttpResponse& response);

  /// Waits before the next try. Error(kInput) where all are used up or the server asks for too long
  /// a wait; `reason` says what went wrong.
  void wait(const std::string& reason, long retry_after);

  /// The last try got somewhere: counting begins anew.
  void restart() { used_ = 0; }

 private:
  int most_, used_ = 0;
  std::string what_;
  std::stop_token stop_;
  PullObserver& observer_;
};

/// "status 503", or the error of a response, for messages.
std::string reason_of(const HttpResponse& response);

}  // namespace orthrus
