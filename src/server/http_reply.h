#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_answer.h"

namespace orthrus {

class HttpExchange;

/// The way to answer one request, from any thread and at any time, also after the server is gone.
/// No call waits for the client. Either send(), or begin_stream(), write()... and end(); another
/// order is an Error(kInternal). Once the client is gone all of them do nothing.
///
/// When the last owner lets go of it, an answer that was not begun becomes a 500, and a stream that
/// was not ended is cut off in a way that the client notices.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<HttpExchange> exchange);
  ~HttpReply();
  HttpReply(const HttpReply&) = delete;
  HttpReply& operator=(const HttpReply&) = delete;

  void send(HttpAnswer answer);

  /// `head.body` is not used. An event stream is marked as one that proxies must not hold back.
  void begin_stream(HttpAnswer head);
  /// What is written faster than the client reads it goes out in larger pieces. A client that
  /// leaves more than HttpOptions::max_queued_bytes unread is taken for gone.
  void write(std::string_view bytes);
  void end();

  /// Calls once, on an I/O thread, when the client goes away before the reply has ended; at once
  /// where it is gone already. A client that shuts down only its sending half counts as gone, as
  /// with most servers: nothing else tells that a program which waits for an answer was ended.
  /// `call` must not block and not own this reply.
  void on_close(std::function<void()> call);
  bool closed() const;

 private:
  std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace orthrus
