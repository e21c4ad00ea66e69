#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace orthrus {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) fail_usage("a stop string is empty, expected at least one byte");
    if (text.size() > UINT32_MAX) fail_usage("a stop string of {} bytes is too long", text.size());
    Stop stop{std::move(text), {}};
    stop.border.assign(stop.text.size(), 0);
    for (size_t i = 1; i < stop.text.size(); ++i) {
      advance(stop, stop.text[i]);
      stop.border[i] = static_cast<uint32_t>(stop.matched);
    }
    stop.matched = 0;
    stops_.push_back(std::move(stop));
  }
}

void StopMatcher::advance(Stop& stop, char byte) {
  while (stop.matched > 0 && stop.text[stop.matched] != byte) {
    stop.matched = stop.border[stop.matched - 1];
  }
  if (stop.text[stop.matched] == byte) ++stop.matched;
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return "";
  for (char byte : text) {
    held_.push_back(byte);
    size_t complete = 0;
    for (Stop& stop : stops_) {
      advance(stop, byte);
      if (stop.matched == stop.text.size()) complete = std::max(complete, stop.matched);
    }
    if (complete > 0) {
      stopped_ = true;
      std::string out = held_.substr(0, held_.size() - complete);
      held_.clear();
      return out;
    }
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() {
  for (Stop& stop : stops_) stop.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace orthrus
