#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "server/http_answer.h"
#include "server/http_request.h"

namespace orthrus {

/// One HTTP/1 request out of bytes that come in any pieces. Boost.Beast's parser, with the checks
/// that it leaves to its users.
class HttpParser {
 public:
  HttpParser(size_t max_header_bytes, size_t max_body_bytes);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  enum class Step {
    kMore,      ///< all that can be used was used; more bytes are needed
    kHeader,    ///< once, when the header is whole: request() has everything but the body
    kComplete,  ///< the request is whole
    kRefused    ///< refusal() is the answer; nothing can follow on this connection
  };
  /// Adds to `used` how many of `bytes` are done with. The others come again in the next call, in
  /// front of new ones; they are never more than max_header_bytes.
  Step put(std::string_view bytes, size_t& used);

  HttpRequest& request();
  const HttpAnswer& refusal() const;
  /// Frees what was received of the body. No put() after it.
  void drop_body();

  size_t body_bytes() const;      ///< received up to now
  bool is_http10() const;         ///< knows no chunked encoding
  bool keeps_connection() const;  ///< the client wants to go on after the answer
  bool expects_continue() const;  ///< it waits for "100 Continue" before it sends the body

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
