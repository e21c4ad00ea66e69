#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_body_share.h"
#include "server/http_exchange.h"
#include "server/http_parser.h"
#include "server/http_reply.h"
#include "server/http_shared.h"

namespace orthrus {

/// One client's connection: requests one after the other, each answered before the next is read.
/// All of it runs on the socket's executor, a strand.
///
/// While a reply is under way the connection keeps reading, to notice that the client goes away.
/// It ends by shutting down its sending half and reading on until the client closes, for
/// linger_timeout at most: closing with bytes unread would reset the connection, and the client
/// might never see an answer that was sent before all of its request was read.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  HttpConnection(Socket socket, HttpShared& shared);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// Begins to read requests. From any thread.
  void start();
  /// Answers 503 without reading a request. From any thread.
  void start_full();
  /// Ends it at once, whatever it does. From any thread.
  void stop();

 private:
  enum class Phase { kIdle, kHeader, kBody, kReply, kLinger, kClosed };
  using Clock = std::chrono::steady_clock;
  using Timer = boost::asio::steady_timer;

  bool prepare();
  void set_deadline(std::chrono::milliseconds after);
  void on_deadline();

  void read();
  void on_read(const boost::system::error_code& error, size_t bytes);
  void on_end_of_input(bool clean);
  void parse();
  bool on_header();
  void refuse(HttpAnswer answer, bool close);
  void refuse_body(bool close);
  void dispatch();
  std::shared_ptr<HttpReply> begin_reply();
  bool count_body(size_t bytes);

  void pump();
  std::string head_of(const HttpAnswer& head, bool streamed);
  void write(std::string bytes);
  void write_some();
  void on_written(const boost::system::error_code& error, size_t bytes);
  void finish_reply();
  void log_request(int status) const;
  void linger();
  void close();

  Socket socket_;
  HttpShared& shared_;
  Timer deadline_;        // of the phase
  Timer write_deadline_;  // of the bytes in out_
  std::string address_;   // of the peer
  Phase phase_ = Phase::kIdle;

  // Reading. One read at a time, into chunk_; input_ is what no request has used yet.
  std::vector<char> chunk_;
  std::string input_;
  bool reading_ = false;
  bool end_of_input_ = false;
  HttpBodyShare share_;  // of the body that is being received

  // The request that is being read or answered.
  std::unique_ptr<HttpParser> parser_;
  Clock::time_point began_;
  std::string client_;  // address_, or whom a trusted proxy names
  std::string id_, method_, path_;
  HttpHeaders cors_;
  bool keep_alive_ = false;

  // Its reply. out_ is what is being written, from out_done_ on.
  std::shared_ptr<HttpExchange> exchange_;
  std::string out_;
  size_t out_done_ = 0;
  size_t out_stream_bytes_ = 0;  // bytes of the stream in out_, to be reported when it is gone
  bool writing_ = false;
  bool all_taken_ = false;  // out_ is the last of this reply
  bool chunked_ = false;
  int status_ = 0;
  size_t body_sent_ = 0;
};

}  // namespace orthrus
