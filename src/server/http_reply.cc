#include "server/http_reply.h"

#include <utility>

#include "server/http_error.h"
#include "server/http_exchange.h"

namespace orthrus {

HttpReply::HttpReply(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}
HttpReply::~HttpReply() {
  if (!exchange_->ended()) exchange_->fail(error_answer(500, "the server gave no answer"));
}

void HttpReply::send(HttpAnswer answer) { exchange_->send(std::move(answer)); }

void HttpReply::begin_stream(HttpAnswer head) {
  if (head.content_type.starts_with("text/event-stream")) {
    head.headers.emplace_back("cache-control", "no-cache");
    head.headers.emplace_back("x-accel-buffering", "no");  // nginx
  }
  exchange_->begin_stream(std::move(head));
}

void HttpReply::write(std::string_view bytes) { exchange_->write(bytes); }
void HttpReply::end() { exchange_->end(); }
void HttpReply::on_close(std::function<void()> call) { exchange_->on_close(std::move(call)); }
bool HttpReply::closed() const { return exchange_->closed(); }

}  // namespace orthrus
