#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "server/http_reply.h"
#include "server/http_request.h"
#include "server/http_router.h"

namespace orthrus {

/// The threads that read requests: what takes longer than the thread of the connections may be
/// kept. Requests wait for them in the order in which they came, and are skipped when their turn
/// comes and their client is gone. The memory of those that wait is bounded by their
/// HttpRequest::share.
class RequestReaders {
 public:
  using Reader = std::function<void(HttpRequest&, const std::shared_ptr<HttpReply>&)>;

  explicit RequestReaders(size_t threads) : pool_(threads) {}

  /// A handler that has `reader` called by one of the threads. What it throws becomes the answer.
  HttpHandler handler(Reader reader);
  /// Waits for all that was handed over; nothing more may come.
  void join() { pool_.join(); }

 private:
  boost::asio::thread_pool pool_;
};

}  // namespace orthrus
