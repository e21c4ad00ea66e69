#include "server/http_exchange.h"

#include <utility>

#include "base/error.h"

namespace orthrus {

HttpExchange::HttpExchange(std::function<void()> wake, size_t max_queued_bytes)
    : wake_(std::move(wake)), max_queued_bytes_(max_queued_bytes) {}

void HttpExchange::wake() {
  if (!std::exchange(woken_, true)) wake_();
}

void HttpExchange::begin(HttpAnswer head, bool streamed, bool ended) {
  ORTHRUS_CHECK(!begun_);
  begun_ = true;
  ended_ = ended;
  if (closed_) return;
  output_.head = std::move(head);
  output_.streamed = streamed;
  output_.ended = ended;
  wake();
}

// The functions are destroyed outside the lock: they may hold the last reference to anything.
std::function<void()> HttpExchange::finish() { return std::exchange(on_close_, nullptr); }

void HttpExchange::send(HttpAnswer answer) {
  std::function<void()> unused;
  const std::lock_guard lock(mutex_);
  begin(std::move(answer), false, true);
  unused = finish();
}

void HttpExchange::begin_stream(HttpAnswer head) {
  const std::lock_guard lock(mutex_);
  begin(std::move(head), true, false);
}

void HttpExchange::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  ORTHRUS_CHECK(begun_ && !ended_);
  if (closed_ || given_up_ || bytes.empty()) return;
  queued_ += bytes.size();
  if (queued_ > max_queued_bytes_) {
    given_up_ = true;
    output_.bytes = std::string();
    return wake_();  // even if it was woken: it takes nothing while it cannot write
  }
  output_.bytes += bytes;
  wake();
}

void HttpExchange::end() {
  std::function<void()> unused;
  const std::lock_guard lock(mutex_);
  ORTHRUS_CHECK(begun_ && !ended_);
  ended_ = true;
  if (closed_) return;
  output_.ended = true;
  unused = finish();
  wake();
}

void HttpExchange::on_close(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!closed_) {
      on_close_.swap(call);
      return;
    }
  }
  call();
}

bool HttpExchange::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void HttpExchange::fail(HttpAnswer answer) {
  std::function<void()> unused;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  unused = finish();
  if (!begun_) {
    begin(std::move(answer), false, true);
  } else {
    ended_ = true;
    if (closed_) return;
    output_.ended = output_.cut = true;
    wake();
  }
}

HttpExchange::Output HttpExchange::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  Output taken = std::exchange(output_, Output());
  // What has been said once holds on.
  output_.streamed = taken.streamed;
  output_.ended = taken.ended;
  if (taken.ended) wake_ = nullptr;
  return taken;
}

void HttpExchange::sent(size_t bytes) {
  const std::lock_guard lock(mutex_);
  queued_ -= bytes;
}

void HttpExchange::close() {
  std::function<void()> call;
  std::function<void()> unused;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    unused = std::exchange(wake_, nullptr);
    call = finish();
    output_ = Output();
  }
  if (call) call();
}

bool HttpExchange::given_up() const {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

bool HttpExchange::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace orthrus
