// Assertions of Beast 1.81 stop the program on what a client may send: a first chunk of size 0
// whose last bytes come one by one breaks `n >= 5` in parse_chunk_header(). The code after it is
// right for any n. This is the only file that includes Beast.
#define BOOST_DISABLE_ASSERTS

#include "server/http_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "base/error.h"
#include "server/http_error.h"
#include "server/http_target.h"

namespace orthrus {
namespace {

namespace http = boost::beast::http;

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

HttpAnswer too_large(size_t limit) {
  return error_answer(413, fmt::format("the body is larger than {} bytes", limit),
                      "request_too_large");
}

HttpAnswer malformed(std::string_view why) {
  return error_answer(400, fmt::format("malformed HTTP request: {}", why));
}

}  // namespace

struct HttpParser::Impl {
  Impl(size_t header_limit, size_t body_limit)
      : max_header_bytes(header_limit), max_body_bytes(body_limit) {
    beast.header_limit(static_cast<uint32_t>(header_limit));
    beast.body_limit(boost::none);  // the header's own checks come first
  }

  Step refuse(HttpAnswer answer) {
    refusal = std::move(answer);
    return Step::kRefused;
  }

  Step refuse(const boost::system::error_code& error) {
    if (error == http::error::header_limit) {
      return refuse(error_answer(
          431, fmt::format("the request's header is larger than {} bytes", max_header_bytes)));
    }
    if (error == http::error::body_limit) return refuse(too_large(max_body_bytes));
    return refuse(malformed(error.message()));
  }

  /// What RFC 9110 and 9112 ask a server to check and Beast does not.
  Step finish_header() {
    for (const auto& field : beast.get()) {
      request.headers.emplace_back(lower_case(field.name_string()), field.value());
    }
    request.method = beast.get().method_string();
    try {
      HttpTarget target = parse_http_target(beast.get().target());
      request.path = std::move(target.path);
      request.query = std::move(target.query);
    } catch (const Error& error) {
      return refuse(error_answer(400, error.what()));
    }
    const size_t hosts = beast.get().count(http::field::host);
    if (hosts > 1 || (hosts == 0 && !http10())) {
      return refuse(malformed(fmt::format("expected one Host header, found {}", hosts)));
    }
    // Any other coding would leave open where the request ends.
    if (const std::string* coding = request.header("transfer-encoding")) {
      if (http10()) return refuse(malformed("Transfer-Encoding in HTTP/1.0"));
      if (lower_case(*coding) != "chunked") {
        return refuse(error_answer(501, "Transfer-Encoding: only \"chunked\" is supported"));
      }
    }
    if (const std::string* expected = request.header("expect")) {
      if (lower_case(*expected) != "100-continue") {
        return refuse(error_answer(417, "Expect: only \"100-continue\" is supported"));
      }
      expects_continue = !http10() && !beast.is_done();
    }
    const auto length = beast.content_length();
    if (length && *length > max_body_bytes) return refuse(too_large(max_body_bytes));
    beast.body_limit(max_body_bytes);
    beast.eager(true);
    return Step::kHeader;
  }

  Step put(std::string_view bytes, size_t& used) {
    while (true) {
      if (header_done && beast.is_done()) {
        request.body = std::move(beast.get().body());
        return Step::kComplete;
      }
      if (bytes.empty()) return Step::kMore;
      boost::system::error_code error;
      const size_t n = beast.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
      used += n;
      bytes.remove_prefix(n);
      if (error && error != http::error::need_more) return refuse(error);
      if (!header_done && beast.is_header_done()) {
        header_done = true;
        return finish_header();
      }
      if (error) {  // more is needed; only chunk extensions and trailers can be too long here
        if (bytes.size() > max_header_bytes) return refuse(http::error::header_limit);
        return Step::kMore;
      }
    }
  }

  bool http10() const { return beast.get().version() < 11; }

  size_t max_header_bytes, max_body_bytes;
  http::request_parser<http::string_body> beast;
  bool header_done = false;
  bool expects_continue = false;
  HttpRequest request;
  HttpAnswer refusal;
};

HttpParser::HttpParser(size_t max_header_bytes, size_t max_body_bytes)
    : impl_(std::make_unique<Impl>(max_header_bytes, max_body_bytes)) {}
HttpParser::~HttpParser() = default;

HttpParser::Step HttpParser::put(std::string_view bytes, size_t& used) {
  return impl_->put(bytes, used);
}

HttpRequest& HttpParser::request() { return impl_->request; }
const HttpAnswer& HttpParser::refusal() const { return impl_->refusal; }
void HttpParser::drop_body() {
  impl_->beast.get().body() = std::string();
  impl_->request.body = std::string();
}

size_t HttpParser::body_bytes() const { return impl_->beast.get().body().size(); }
bool HttpParser::is_http10() const { return impl_->header_done && impl_->http10(); }
bool HttpParser::keeps_connection() const {
  return impl_->header_done && impl_->beast.keep_alive();
}
bool HttpParser::expects_continue() const { return impl_->expects_continue; }

}  // namespace orthrus
