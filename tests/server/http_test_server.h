#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http_error.h"
#include "server/http_server.h"

namespace orthrus {

/// Options for a server of a test: any free port, no log.
inline HttpOptions test_options() {
  HttpOptions options;
  options.port = 0;
  options.access_log = false;
  return options;
}

/// Answers /echo with the body, /who with client and id; keeps the replies of every other path for
/// the test, which answers them or not.
class TestServer {
 public:
  explicit TestServer(HttpOptions options = test_options())
      : server(std::move(options), [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          handle(std::move(request), std::move(reply));
        }) {}

  /// The next reply that was kept; nullptr where none comes.
  std::shared_ptr<HttpReply> next_reply(
      std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    if (!kept_.wait_for(lock, limit, [this] { return !replies_.empty(); })) return nullptr;
    std::shared_ptr<HttpReply> reply = std::move(replies_.front());
    replies_.erase(replies_.begin());
    return reply;
  }

  uint16_t port() const { return server.port(); }

 private:
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    ++handled;
    if (request.path == "/echo") {
      reply->send({.content_type = "text/plain", .body = request.body});
    } else if (request.path == "/who") {
      reply->send({.content_type = "text/plain", .body = request.client + " " + request.id});
    } else {
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
      kept_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable kept_;
  std::vector<std::shared_ptr<HttpReply>> replies_;

 public:
  std::atomic<int> handled{0};
  HttpServer server;  // last: its threads use the others
};

}  // namespace orthrus
