#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_answer.h"

namespace orthrus {

/// What lies between an HttpReply, used by any thread, and its connection, which lives on an I/O
/// thread: a mailbox of bytes to send.
class HttpExchange {
 public:
  /// `wake` tells the connection, from any thread, that there is something to take; it is called
  /// once for all that was put since the last take(), and destroyed by close() or when the end was
  /// taken. A stream of which more than `max_queued_bytes` wait is given up.
  HttpExchange(std::function<void()> wake, size_t max_queued_bytes);

  // For HttpReply; see there.
  void send(HttpAnswer answer);
  void begin_stream(HttpAnswer head);
  void write(std::string_view bytes);
  void end();
  void on_close(std::function<void()> call);
  bool closed() const;
  /// Nobody will go on with the reply: `answer` if it has not begun, a broken stream if it has not
  /// ended.
  void fail(HttpAnswer answer);

  // For the connection.
  struct Output {
    std::optional<HttpAnswer> head;  ///< the first time; with the body where it is not streamed
    bool streamed = false;
    std::string bytes;   ///< of the stream
    bool ended = false;  ///< nothing comes after this
    bool cut = false;    ///< and the client is to notice that it is no proper end
  };
  Output take();
  /// The system has taken so many bytes of the stream.
  void sent(size_t bytes);
  /// The client is gone. Calls what was given to on_close(), unless the reply has ended.
  void close();
  bool ended() const;
  /// The client leaves too much unread: the connection is to be closed.
  bool given_up() const;

 private:
  void begin(HttpAnswer head, bool streamed, bool ended);  // with mutex_ held
  void wake();                                             // with mutex_ held
  std::function<void()> finish();                          // with mutex_ held

  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::function<void()> on_close_;
  const size_t max_queued_bytes_;
  Output output_;
  size_t queued_ = 0;  // put, but not yet taken by the system
  bool woken_ = false;
  bool begun_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool given_up_ = false;
};

}  // namespace orthrus
