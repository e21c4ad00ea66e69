#pragma once

#include <cstdint>
#include <memory>

#include "server/http_options.h"
#include "server/http_router.h"

namespace orthrus {

/// An HTTP/1.1 server on threads of its own.
class HttpServer {
 public:
  /// Serves when it returns. Error(kUsage) for a wrong option, Error(kInput) where the port cannot
  /// be had.
  HttpServer(HttpOptions options, HttpHandler handler);
  /// stop()
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The one it listens on, also where the options say 0.
  uint16_t port() const;

  /// No new connections from now on; those that are open end with their next answer.
  void stop_accepting();
  /// Ends all connections where they are (on_close() of open replies is called) and returns when
  /// no thread of the server runs any more. Not from a handler or an on_close(). Wait for
  /// open_replies() to become 0 first in order to finish what is under way.
  void stop();

  int64_t connections() const;
  /// Requests whose answer has not been given to the system in full.
  int64_t open_replies() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
