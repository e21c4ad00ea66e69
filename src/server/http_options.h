#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orthrus {

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< an address or name; "::" is every address, IPv4 too
  uint16_t port = 8080;            ///< 0: any that is free

  std::vector<std::string> api_keys;  ///< one of them is asked for; empty: none is
  std::vector<std::string> public_paths = {"/", "/health"};  ///< that need no key
  std::vector<std::string> cors_origins;  ///< origins whose pages may ask; "*": any; empty: off

  size_t max_header_bytes = 16 << 10;  ///< request line and headers
  size_t max_body_bytes = 16 << 20;
  /// Of all bodies that are being received or belong to a request that lives (HttpRequest::share).
  size_t max_total_body_bytes = 256 << 20;
  size_t max_queued_bytes = 4 << 20;  ///< of a stream whose client does not read it
  int64_t max_connections = 2048;

  std::chrono::milliseconds header_timeout = std::chrono::seconds(15);  ///< until it is whole
  std::chrono::milliseconds body_timeout = std::chrono::seconds(60);    ///< until it is whole
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(75);    ///< between two requests
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);   ///< in which none is taken
  std::chrono::milliseconds linger_timeout = std::chrono::seconds(5);   ///< see HttpConnection

  int io_threads = 1;
  bool tcp_nodelay = true;
  bool access_log = true;                ///< a line a request, at spdlog's level info
  std::vector<std::string> quiet_paths;  ///< whose successes have none: probes ask every second
  /// Peers whose X-Forwarded-For says who asks (HttpForwarded).
  std::vector<std::string> forwarded_allow_ips;
};

}  // namespace orthrus
