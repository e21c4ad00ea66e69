#include "server/http_listener.h"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::vector<tcp::endpoint> resolve(asio::io_context& context, std::string host, uint16_t port) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);  // as addresses of IPv6 are written in URLs
  }
  error_code error;
  tcp::resolver resolver(context);
  const auto results =
      host.empty() ? tcp::resolver::results_type()
                   : resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  std::vector<tcp::endpoint> endpoints;
  for (const auto& result : results) {
    if (std::find(endpoints.begin(), endpoints.end(), result.endpoint()) == endpoints.end()) {
      endpoints.push_back(result.endpoint());
    }
  }
  if (endpoints.empty()) {
    fail_usage("host \"{}\": expected an address of this machine or a name of one{}",
               printable(host), error ? " (" + error.message() + ")" : "");
  }
  return endpoints;
}

/// A name may stand for addresses of a family that this machine does not have.
bool is_missing_family(const error_code& error) {
  return error == asio::error::address_family_not_supported ||
         error == boost::system::errc::address_not_available;
}

}  // namespace

HttpListener::HttpListener(asio::io_context& context, const std::string& host, uint16_t port)
    : context_(context), strand_(asio::make_strand(context)), port_(port) {
  const std::vector<tcp::endpoint> endpoints = resolve(context, host, port);
  error_code skipped;
  for (tcp::endpoint endpoint : endpoints) {
    endpoint.port(port_);
    error_code error;
    Acceptor acceptor = open(endpoint, endpoints.size() > 1, error);
    if (error && is_missing_family(error)) {
      skipped = error;
      continue;
    }
    if (error) {
      fail("cannot listen on {}, port {}: {}", printable(host), port_, error.message());
    }
    port_ = acceptor.local_endpoint().port();
    doors_.push_back(
        std::make_unique<Door>(Door{std::move(acceptor), asio::steady_timer(strand_)}));
  }
  if (doors_.empty()) {
    fail("cannot listen on {}, port {}: {}", printable(host), port_, skipped.message());
  }
}

HttpListener::Acceptor HttpListener::open(const tcp::endpoint& endpoint, bool only_v6,
                                          error_code& error) {
  Acceptor acceptor(strand_);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(only_v6), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  return acceptor;
}

void HttpListener::start(OnSocket on_socket) {
  on_socket_ = std::move(on_socket);
  asio::post(strand_, [self = shared_from_this()] {
    for (const auto& door : self->doors_) self->accept(*door);
  });
}

void HttpListener::stop() {
  asio::post(strand_, [self = shared_from_this()] {
    for (const auto& door : self->doors_) {
      error_code ignored;
      door->acceptor.close(ignored);
      door->pause.cancel();
    }
  });
}

void HttpListener::accept(Door& door) {
  if (!door.acceptor.is_open()) return;
  door.acceptor.async_accept(
      asio::make_strand(context_),
      asio::bind_executor(
          strand_, [self = shared_from_this(), &door](const error_code& error, Socket socket) {
            self->on_accept(door, error, std::move(socket));
          }));
}

void HttpListener::on_accept(Door& door, const error_code& error, Socket socket) {
  if (!door.acceptor.is_open()) return;
  if (!error) {
    door.failing = false;
    accept(door);
    return on_socket_(std::move(socket));
  }
  if (error == asio::error::connection_aborted) return accept(door);
  // No file descriptor or no memory is left, and the next try would fail the same way at once. The
  // clients wait in the system's queue meanwhile.
  if (!std::exchange(door.failing, true)) {
    spdlog::warn("cannot take connections for now: {}", error.message());
  }
  door.pause.expires_after(std::chrono::milliseconds(100));
  door.pause.async_wait(
      [self = shared_from_this(), &door](const error_code&) { self->accept(door); });
}

}  // namespace orthrus
