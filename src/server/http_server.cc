#include "server/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "server/http_connection.h"
#include "server/http_listener.h"

namespace orthrus {
namespace {

namespace asio = boost::asio;

// Connections beyond the limit that are told so; those beyond these are dropped without a word.
constexpr int64_t kRefusedAtOnce = 64;

HttpOptions checked(HttpOptions options) {
  if (options.io_threads < 1)
    fail_usage("io_threads: expected 1 or more, found {}", options.io_threads);
  if (options.max_connections < 1) {
    fail_usage("max_connections: expected 1 or more, found {}", options.max_connections);
  }
  return options;
}

/// Raises the soft limit of open files as far as the connections need and the hard limit allows.
void raise_file_limit(int64_t connections) {
  constexpr rlim_t kOthers = 256;  // models, logs, and connections that are being refused
  const rlim_t wanted = static_cast<rlim_t>(connections) + kOthers;
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    spdlog::warn("{} open files are allowed, {} connections may need {}: others will wait",
                 limit.rlim_cur, connections, wanted);
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions o, HttpHandler handler)
      : shared(checked(std::move(o)), std::move(handler)),
        context(shared.options.io_threads),
        work(context.get_executor()),
        listener(
            std::make_shared<HttpListener>(context, shared.options.host, shared.options.port)) {
    raise_file_limit(shared.options.max_connections);
    listener->start([this](HttpListener::Socket socket) { take(std::move(socket)); });
    for (int i = 0; i < shared.options.io_threads; ++i) threads.emplace_back([this] { run(); });
  }

  void take(HttpListener::Socket socket) {
    const int64_t open = shared.open_connections();
    if (open >= shared.options.max_connections + kRefusedAtOnce) return;
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), shared);
    if (!shared.add(connection.get())) return;
    if (open < shared.options.max_connections) {
      connection->start();
    } else {
      connection->start_full();
    }
  }

  void run() {
    while (true) {
      try {
        context.run();
        return;
      } catch (const std::exception& error) {  // the connection that threw it is gone with it
        spdlog::error("HTTP: {}", error.what());
      }
    }
  }

  // Destroyed in the opposite order: what the context still holds refers to `shared`.
  HttpShared shared;
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::shared_ptr<HttpListener> listener;
  std::vector<std::thread> threads;
  std::mutex stopping;
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { stop(); }

uint16_t HttpServer::port() const { return impl_->listener->port(); }

void HttpServer::stop_accepting() {
  impl_->shared.last_answers = true;
  impl_->listener->stop();
}

void HttpServer::stop() {
  const std::lock_guard lock(impl_->stopping);
  stop_accepting();
  impl_->shared.stop_connections();
  impl_->work.reset();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

int64_t HttpServer::connections() const { return impl_->shared.open_connections(); }
int64_t HttpServer::open_replies() const { return impl_->shared.open_replies; }

}  // namespace orthrus
