#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "server/http_body_share.h"
#include "server/http_forwarded.h"
#include "server/http_gate.h"
#include "server/http_options.h"
#include "server/http_router.h"

namespace orthrus {

class HttpConnection;

/// What the connections of a server share. It outlives them.
class HttpShared {
 public:
  HttpShared(HttpOptions o, HttpHandler h)
      : options(std::move(o)),
        handler(std::move(h)),
        gate(options),
        forwarded(options.forwarded_allow_ips) {}

  const HttpOptions options;
  const HttpHandler handler;
  const HttpGate gate;
  const HttpForwarded forwarded;
  std::atomic<int64_t> open_replies{0};
  const HttpBodyShare::Total body_bytes = std::make_shared<std::atomic<size_t>>(0);
  std::atomic<bool> last_answers{false};  ///< connections end with their next answer

  /// False once stop_connections() was called: the connection is not to begin.
  bool add(HttpConnection* connection);
  void remove(HttpConnection* connection);
  int64_t open_connections() const;
  void stop_connections();

 private:
  mutable std::mutex mutex_;
  std::unordered_set<HttpConnection*> open_;
  bool stopped_ = false;
};

}  // namespace orthrus
