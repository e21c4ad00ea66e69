#include "server/http_shared.h"

#include "server/http_connection.h"

namespace orthrus {

bool HttpShared::add(HttpConnection* connection) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) open_.insert(connection);
  return !stopped_;
}

void HttpShared::remove(HttpConnection* connection) {
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
}

int64_t HttpShared::open_connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(open_.size());
}

void HttpShared::stop_connections() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (HttpConnection* connection : open_) connection->stop();
}

}  // namespace orthrus
