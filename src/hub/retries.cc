#include "hub/retries.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{500}, kLongestWait{30'000};
constexpr long kMaxRetryAfter = 300;  // seconds; after more a person decides

}  // namespace

void sleep_for(milliseconds time, const std::stop_token& stop) {
  constexpr milliseconds kStep{50};
  for (milliseconds slept{0}; slept < time && !stop.stop_requested(); slept += kStep) {
    std::this_thread::sleep_for(std::min(kStep, time - slept));
  }
  if (stop.stop_requested()) fail("interrupted");
}

Retries::Retries(int most, std::string what, std::stop_token stop, PullObserver& observer)
    : most_(most), what_(std::move(what)), stop_(std::move(stop)), observer_(observer) {}

bool Retries::worth_it(const HttpResponse& response) {
  if (!response.error.empty()) return response.transient;
  const long status = response.status;
  return status == 408 || status == 429 || status >= 500 || (status == 403 && !response.from_hub);
}

void Retries::wait(const std::string& reason, long retry_after) {
  const std::string tries = most_ > 0 ? fmt::format(", also after {} more tries", most_) : "";
  if (used_ >= most_) fail("{}: {}{}", what_, reason, tries);
  if (retry_after > kMaxRetryAfter) {
    fail("{}: {}: the server asks to wait for {} seconds", what_, reason, retry_after);
  }
  const milliseconds own = std::min(kFirstWait * (1 << std::min(used_, 10)), kLongestWait);
  const milliseconds time = std::max<milliseconds>(own, std::chrono::seconds(retry_after));
  ++used_;
  observer_.on_notice(fmt::format("{}: {}: trying again in {:.1f} s ({} of {})", what_, reason,
                                  static_cast<double>(time.count()) / 1e3, used_, most_));
  sleep_for(time, stop_);
}

std::string reason_of(const HttpResponse& response) {
  if (!response.error.empty()) return response.error;
  const std::string message = response.header("x-error-message");
  return fmt::format("{} answers with status {}{}{}",
                     response.from_hub ? "the hub" : "the storage host", response.status,
                     message.empty() ? "" : ": ", printable(message));
}

}  // namespace orthrus
