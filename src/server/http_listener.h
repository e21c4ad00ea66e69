#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace orthrus {

/// Takes connections at every address that a host name stands for.
class HttpListener : public std::enable_shared_from_this<HttpListener> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  /// Each socket has a strand of its own. Called on an I/O thread, from one at a time.
  using OnSocket = std::function<void(Socket)>;

  /// Binds at once; port 0 is any that is free. Error(kUsage) for a host that is none,
  /// Error(kInput) where the port cannot be had.
  HttpListener(boost::asio::io_context& context, const std::string& host, uint16_t port);

  uint16_t port() const { return port_; }
  void start(OnSocket on_socket);
  /// From any thread; waits for nothing.
  void stop();

 private:
  using Acceptor = boost::asio::ip::tcp::acceptor;
  struct Door {
    Acceptor acceptor;
    boost::asio::steady_timer pause;  // until it tries again
    bool failing = false;
  };

  Acceptor open(const boost::asio::ip::tcp::endpoint& endpoint, bool only_v6,
                boost::system::error_code& error);
  void accept(Door& door);
  void on_accept(Door& door, const boost::system::error_code& error, Socket socket);

  boost::asio::io_context& context_;
  boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  std::vector<std::unique_ptr<Door>> doors_;
  uint16_t port_;
  OnSocket on_socket_;
};

}  // namespace orthrus
