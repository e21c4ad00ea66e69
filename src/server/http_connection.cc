#include "server/http_connection.h"

#include <netinet/tcp.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/http_address.h"
#include "server/http_error.h"

namespace orthrus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Small while nothing is expected, so that idle connections cost little.
constexpr size_t kHeaderReadBytes = 4 << 10;
constexpr size_t kBodyReadBytes = 64 << 10;

/// A client whose machine is gone says nothing; without probes a reply would wait for it forever.
void probe_dead_peers(asio::ip::tcp::socket& socket) {
  using Idle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(Idle(30), ignored);
  socket.set_option(Interval(10), ignored);
  socket.set_option(Count(3), ignored);
}

}  // namespace

HttpConnection::HttpConnection(Socket socket, HttpShared& shared)
    : socket_(std::move(socket)),
      shared_(shared),
      deadline_(socket_.get_executor()),
      write_deadline_(socket_.get_executor()),
      share_(shared.body_bytes) {}

HttpConnection::~HttpConnection() { close(); }

void HttpConnection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->prepare()) return;
    self->set_deadline(self->shared_.options.header_timeout);
    self->read();
  });
}

void HttpConnection::start_full() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->prepare()) return;
    HttpAnswer answer = error_answer(503, "too many connections", "too_many_connections");
    answer.headers.emplace_back("retry-after", "1");
    self->began_ = Clock::now();
    self->refuse(std::move(answer), true);
    self->read();
  });
}

void HttpConnection::stop() {
  const std::shared_ptr<HttpConnection> self = weak_from_this().lock();  // null as it dies
  if (self) asio::post(socket_.get_executor(), [self] { self->close(); });
}

/// False where the client is gone already.
bool HttpConnection::prepare() {
  error_code error;
  const auto peer = socket_.remote_endpoint(error);
  if (error || phase_ == Phase::kClosed) {
    close();
    return false;
  }
  client_ = address_ = address_text(peer.address());
  if (shared_.options.tcp_nodelay) socket_.set_option(asio::ip::tcp::no_delay(true), error);
  probe_dead_peers(socket_);
  return true;
}

void HttpConnection::set_deadline(std::chrono::milliseconds after) {
  deadline_.expires_after(after);
  deadline_.async_wait(
      [self = shared_from_this(), when = deadline_.expiry()](const error_code& error) {
        // A wait that ended just before it was cancelled still comes here.
        if (!error && self->deadline_.expiry() == when) self->on_deadline();
      });
}

void HttpConnection::on_deadline() {
  switch (phase_) {
    case Phase::kHeader:
    case Phase::kBody:
      return refuse(error_answer(408, "the request did not arrive in time", "request_timeout"),
                    true);
    case Phase::kIdle:
    case Phase::kLinger:
      return close();
    case Phase::kReply:
    case Phase::kClosed:
      return;
  }
}

void HttpConnection::read() {
  // Requests that were sent ahead are held back by TCP once a header's worth of them waits here.
  const bool full = phase_ == Phase::kReply && input_.size() >= shared_.options.max_header_bytes;
  if (reading_ || end_of_input_ || phase_ == Phase::kClosed || full) return;
  reading_ = true;
  const bool large = phase_ == Phase::kBody || phase_ == Phase::kLinger;
  const size_t size = large ? kBodyReadBytes : kHeaderReadBytes;
  if (chunk_.size() != size) chunk_ = std::vector<char>(size);
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void HttpConnection::on_read(const error_code& error, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) return on_end_of_input(error == asio::error::eof);
  if (phase_ != Phase::kLinger) input_.append(chunk_.data(), bytes);
  parse();
  read();
}

void HttpConnection::on_end_of_input(bool clean) {
  end_of_input_ = true;
  const bool answered = exchange_ && exchange_->ended();
  if (clean && (phase_ == Phase::kHeader || phase_ == Phase::kBody)) {
    return refuse(error_answer(400, "malformed HTTP request: it ends in the middle"), true);
  }
  // An answer that is complete is still delivered to a client that has shut down its sending half.
  if (!clean || phase_ != Phase::kReply || !answered) close();
}

void HttpConnection::parse() {
  while (phase_ == Phase::kIdle || phase_ == Phase::kHeader || phase_ == Phase::kBody) {
    if (phase_ == Phase::kIdle) {
      while (input_.starts_with("\r\n")) input_.erase(0, 2);  // RFC 9112, 2.2
      if (input_.empty() || input_ == "\r") return;
      phase_ = Phase::kHeader;
      client_ = address_;
      parser_ = std::make_unique<HttpParser>(shared_.options.max_header_bytes,
                                             shared_.options.max_body_bytes);
      began_ = Clock::now();
      set_deadline(shared_.options.header_timeout);
    }
    size_t used = 0;
    const HttpParser::Step step = parser_->put(input_, used);
    input_.erase(0, used);
    switch (step) {
      case HttpParser::Step::kRefused:
        return refuse(parser_->refusal(), true);
      case HttpParser::Step::kHeader:
        if (!on_header()) return;
        break;
      case HttpParser::Step::kMore:
        if (!count_body(parser_->body_bytes())) refuse_body(true);
        return;
      case HttpParser::Step::kComplete:
        if (!count_body(parser_->request().body.size())) return refuse_body(false);
        return dispatch();
    }
  }
}

/// Keeps the account of all bodies; false where it is overdrawn.
bool HttpConnection::count_body(size_t bytes) {
  const size_t total = share_.set(bytes);
  return bytes == 0 || total <= shared_.options.max_total_body_bytes;
}

/// False where the request goes no further.
bool HttpConnection::on_header() {
  HttpRequest& request = parser_->request();
  request.address = client_ = shared_.forwarded.client(address_, request.headers);
  size_t unused = 0;
  const bool whole = parser_->put({}, unused) == HttpParser::Step::kComplete;
  if (std::optional<HttpAnswer> answer = shared_.gate.check(request)) {
    refuse(std::move(*answer), !whole);
    return false;
  }
  if (!whole) {
    phase_ = Phase::kBody;
    set_deadline(shared_.options.body_timeout);
    if (parser_->expects_continue() && input_.empty()) write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return true;
}

void HttpConnection::refuse(HttpAnswer answer, bool close) {
  const std::shared_ptr<HttpReply> reply = begin_reply();
  keep_alive_ = !close && parser_->keeps_connection();
  reply->send(std::move(answer));
  if (parser_) parser_->drop_body();  // the answer may take its time
  count_body(0);
}

void HttpConnection::refuse_body(bool close) {
  HttpAnswer answer = error_answer(503, "too many large requests at once", "overloaded");
  answer.headers.emplace_back("retry-after", "1");
  refuse(std::move(answer), close);
}

void HttpConnection::dispatch() {
  const std::shared_ptr<HttpReply> reply = begin_reply();
  keep_alive_ = parser_->keeps_connection();
  HttpRequest request = std::move(parser_->request());
  request.id = id_;
  request.share = std::move(share_);
  HttpAnswer failure;
  try {
    shared_.handler(std::move(request), reply);
  } catch (const Error& error) {
    failure = error_answer(error.kind() == ErrorKind::kInternal ? 500 : 400, error.what());
  } catch (const std::exception& error) {
    failure = error_answer(500, fmt::format("internal error: {}", error.what()));
  }
  if (!failure.body.empty()) {
    if (failure.status == 500) spdlog::error("{}: {}", id_, failure.body);
    exchange_->fail(std::move(failure));
  }
  // Sent ahead by a client that has shut down its sending half since.
  if (end_of_input_ && !exchange_->ended()) close();
}

}  // namespace orthrus
