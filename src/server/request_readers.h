#pragma once

#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/api_error.h"
#include "server/http_reply.h"
#include "server/http_request.h"
#include "server/http_router.h"

namespace orthrus {

/// The threads that read requests: what takes longer than the thread of the connections may be
/// kept. Clients take turns, each with its requests in the order in which they came, so that nobody
/// waits for all that another has sent. Requests whose client is gone by then are skipped. The
/// memory of those that wait is bounded by their HttpRequest::share.
class RequestReaders {
 public:
  using Reader = std::function<void(HttpRequest&, const std::shared_ptr<HttpReply>&)>;

  explicit RequestReaders(size_t threads) : pool_(threads) {}

  /// A handler that has `reader` called by one of the threads. What it throws becomes the answer.
  HttpHandler handler(Reader reader);
  /// Answers all that wait with this error instead.
  void refuse_waiting(const ApiError& error);
  /// Waits for all that was handed over; nothing more may come.
  void join() { pool_.join(); }

 private:
  struct Task {
    Reader reader;
    HttpRequest request;
    std::shared_ptr<HttpReply> reply;
  };
  void put(Task task);
  std::optional<Task> take();
  void read_next();

  std::mutex mutex_;
  std::map<std::string, std::deque<Task>> waiting_;  // by client; none is empty
  std::deque<std::string> turns_;                    // the clients in there, next one first
  boost::asio::thread_pool pool_;
};

}  // namespace orthrus
