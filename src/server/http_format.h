#pragma once

#include <string>
#include <string_view>

#include "server/http_answer.h"

namespace orthrus {

/// How a client learns where the body ends.
enum class HttpFraming {
  kLength,   ///< by Content-Length
  kChunked,  ///< by the chunk of size 0
  kClose     ///< by the end of the connection, for a stream to an HTTP/1.0 client
};

struct HttpHeadOptions {
  HttpFraming framing = HttpFraming::kLength;
  bool keep_alive = true;
  std::string_view id;                ///< for x-request-id
  const HttpHeaders* more = nullptr;  ///< beside those of the answer
};

/// Whether an answer of this status has a body at all.
bool has_body(int status);

/// Status line, headers and the empty line after them. Error(kInternal) for a header of the answer
/// that would end its line early.
std::string http_head(const HttpAnswer& answer, const HttpHeadOptions& options);

/// `bytes` as one chunk; they are not empty.
std::string http_chunk(std::string_view bytes);

/// The chunk that ends a body.
constexpr std::string_view kLastChunk = "0\r\n\r\n";

/// Whether a client's x-request-id can be used as it is: 1 to 64 of A-Z a-z 0-9 . _ -
bool is_request_id(std::string_view text);

/// A new one, unique in practice. From any thread.
std::string new_request_id();

}  // namespace orthrus
