#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "hub/settings.h"

namespace orthrus {

/// What came of a request: the end of its redirects, or why there was none.
struct HttpResponse {
  long status = 0;                             ///< 0: no answer at all
  std::map<std::string, std::string> headers;  ///< names in lower case; of the last answer
  std::string url;                             ///< that answered
  std::string error;       ///< "" where the answer came whole, whatever its status
  bool transient = false;  ///< `error` is one that may pass: a cut connection, a stall
  bool from_hub = true;    ///< false: another origin than the endpoint's answered
  long retry_after = 0;    ///< seconds that the server asked to wait; 0: it did not say

  /// "" where there is no such header.
  std::string header(const std::string& name) const;
};

struct HttpRequest {
  std::string url = {};
  bool head = false;    ///< HEAD; redirects to other origins are not followed then
  uint64_t offset = 0;  ///< above 0: only the bytes from there on are asked for
  /// Takes the body of an answer of status 200 or 206, chunk by chunk, beside status and headers.
  std::function<void(const HttpResponse&, std::span<const std::byte>)> on_body = {};
};

/// HTTP through libcurl. TLS certificates are always verified; at most 10 redirects, to http or
/// https alone and never from https to http; the token goes to the endpoint's own origin only.
class HttpClient {
 public:
  /// `stop` ends a request that runs.
  HttpClient(const HubSettings& settings, std::stop_token stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Error(kInput) where `stop` was asked for, and for a redirect that is refused; what `on_body`
  /// throws comes through. All else is in the response.
  HttpResponse send(const HttpRequest& request);

 private:
  struct Transfer;
  HttpResponse send_once(const HttpRequest& request, const std::string& url);

  HubSettings settings_;
  std::stop_token stop_;
  std::string hub_origin_;
  void* curl_;            // CURL*: its header stays out of ours
  bool reached_ = false;  // the network has worked once: a failure to connect may pass
};

}  // namespace orthrus
