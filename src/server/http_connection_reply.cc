// The part of a connection that answers: from the beginning of a reply to the end of it, or of the
// connection.
#include "server/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "formats/printable.h"
#include "server/http_format.h"

namespace orthrus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

std::shared_ptr<HttpReply> HttpConnection::begin_reply() {
  phase_ = Phase::kReply;
  deadline_.expires_at(Timer::time_point::max());
  id_.clear();
  method_ = path_ = "-";
  cors_.clear();
  if (parser_) {
    HttpRequest& request = parser_->request();
    if (const std::string* id = request.header("x-request-id"); id && is_request_id(*id)) id_ = *id;
    if (!request.method.empty()) method_ = request.method;
    if (!request.path.empty()) path_ = request.path;
    cors_ = shared_.gate.cors_headers(request);
  }
  if (id_.empty()) id_ = new_request_id();
  status_ = 0;
  body_sent_ = 0;
  all_taken_ = false;
  ++shared_.open_replies;
  // The reply owns the connection until close() or its end: it may be all that does.
  exchange_ = std::make_shared<HttpExchange>(
      [self = shared_from_this()] {
        asio::post(self->socket_.get_executor(), [self] { self->pump(); });
      },
      shared_.options.max_queued_bytes);
  return std::make_shared<HttpReply>(exchange_);
}

void HttpConnection::pump() {
  if (phase_ != Phase::kReply) return;
  if (exchange_->given_up()) return close();
  if (writing_ || all_taken_) return;
  HttpExchange::Output output = exchange_->take();
  if (!status_ && !output.head) return;  // woken for nothing
  std::string bytes;
  if (output.head) bytes = head_of(*output.head, output.streamed);
  const bool body = method_ != "HEAD" && has_body(status_);
  const std::string& part = output.streamed || !output.head ? output.bytes : output.head->body;
  if (body && !part.empty()) {
    bytes += chunked_ ? http_chunk(part) : part;
    body_sent_ += part.size();
  }
  all_taken_ = output.ended;
  if (output.cut) {
    keep_alive_ = false;
  } else if (all_taken_ && chunked_ && body) {
    bytes += kLastChunk;
  }
  out_stream_bytes_ = output.bytes.size();
  if (!bytes.empty()) return write(std::move(bytes));
  exchange_->sent(std::exchange(out_stream_bytes_, 0));
  if (all_taken_) finish_reply();
}

std::string HttpConnection::head_of(const HttpAnswer& head, bool streamed) {
  status_ = head.status;
  HttpFraming framing = HttpFraming::kLength;
  if (streamed) framing = parser_->is_http10() ? HttpFraming::kClose : HttpFraming::kChunked;
  chunked_ = framing == HttpFraming::kChunked;
  if (framing == HttpFraming::kClose || shared_.last_answers) keep_alive_ = false;
  return http_head(head,
                   {.framing = framing, .keep_alive = keep_alive_, .id = id_, .more = &cors_});
}

void HttpConnection::write(std::string bytes) {
  out_ = std::move(bytes);
  out_done_ = 0;
  writing_ = true;
  write_some();
}

void HttpConnection::write_some() {
  write_deadline_.expires_after(shared_.options.write_timeout);
  write_deadline_.async_wait(
      [self = shared_from_this(), when = write_deadline_.expiry()](const error_code& error) {
        if (!error && self->write_deadline_.expiry() == when) self->close();
      });
  socket_.async_write_some(asio::buffer(out_.data() + out_done_, out_.size() - out_done_),
                           [self = shared_from_this()](const error_code& error, size_t bytes) {
                             self->on_written(error, bytes);
                           });
}

void HttpConnection::on_written(const error_code& error, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (error) return close();
  out_done_ += bytes;
  if (out_done_ < out_.size()) return write_some();
  write_deadline_.expires_at(Timer::time_point::max());
  writing_ = false;
  out_ = std::string();
  if (phase_ != Phase::kReply) return;  // it was "100 Continue"
  exchange_->sent(std::exchange(out_stream_bytes_, 0));
  if (all_taken_) return finish_reply();
  pump();
}

void HttpConnection::finish_reply() {
  log_request(status_);
  exchange_.reset();
  --shared_.open_replies;
  parser_.reset();
  input_.shrink_to_fit();
  if (!keep_alive_) return linger();
  phase_ = Phase::kIdle;
  set_deadline(shared_.options.idle_timeout);
  parse();
  if (end_of_input_ && phase_ != Phase::kReply) return linger();
  read();
}

void HttpConnection::log_request(int status) const {
  if (!shared_.options.access_log) return;
  const auto& quiet = shared_.options.quiet_paths;
  if (status < 400 && std::find(quiet.begin(), quiet.end(), path_) != quiet.end()) return;
  const std::chrono::duration<double, std::milli> taken = Clock::now() - began_;
  spdlog::info("{} {} {} {} {} {} B {:.1f} ms", id_, client_, printable(method_), printable(path_),
               status, body_sent_, taken.count());
}

void HttpConnection::linger() {
  if (end_of_input_) return close();
  phase_ = Phase::kLinger;
  input_ = std::string();
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_deadline(shared_.options.linger_timeout);
  read();
}

void HttpConnection::close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  shared_.remove(this);
  count_body(0);
  error_code ignored;
  socket_.close(ignored);
  deadline_.cancel();
  write_deadline_.cancel();
  if (!exchange_) return;
  constexpr int kClientGone = 499;  // as nginx logs it
  log_request(kClientGone);
  --shared_.open_replies;
  try {
    std::exchange(exchange_, nullptr)->close();
  } catch (const std::exception& error) {
    spdlog::error("{}: on_close: {}", id_, error.what());
  }
}

}  // namespace orthrus
