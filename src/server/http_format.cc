#include "server/http_format.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "base/error.h"

namespace orthrus {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";  // a client must not read it (RFC 9112, 4)
  }
}

/// As RFC 9110, 5.6.7 has it; strftime() would ask the locale for the names.
std::string http_date(time_t now) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  tm utc;
  ::gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

void add_header(std::string& out, std::string_view name, std::string_view value) {
  constexpr std::string_view kLineEnds("\r\n\0", 3);
  ORTHRUS_CHECK(name.find_first_of(kLineEnds) == std::string_view::npos);
  ORTHRUS_CHECK(value.find_first_of(kLineEnds) == std::string_view::npos);
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string http_head(const HttpAnswer& answer, const HttpHeadOptions& options) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
  add_header(out, "date", http_date(::time(nullptr)));
  add_header(out, "server", "orthrus");
  add_header(out, "x-request-id", options.id);
  add_header(out, "x-content-type-options", "nosniff");
  if (has_body(answer.status)) {
    add_header(out, "content-type", answer.content_type);
    if (options.framing == HttpFraming::kLength) {
      add_header(out, "content-length", std::to_string(answer.body.size()));
    } else if (options.framing == HttpFraming::kChunked) {
      add_header(out, "transfer-encoding", "chunked");
    }
  }
  add_header(out, "connection", options.keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : answer.headers) add_header(out, name, value);
  if (options.more) {
    for (const auto& [name, value] : *options.more) add_header(out, name, value);
  }
  return out += "\r\n";
}

std::string http_chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

bool is_request_id(std::string_view text) {
  const auto clean = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), clean);
}

std::string new_request_id() {
  static const uint32_t start = std::random_device()();
  static std::atomic<uint32_t> count{std::random_device()()};
  return fmt::format("req-{:08x}{:08x}", start, count.fetch_add(1));
}

}  // namespace orthrus
