#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_answer.h"
#include "server/http_options.h"
#include "server/http_request.h"

namespace orthrus {

/// Who may ask: API keys, and pages of other origins. Decides on a request's header alone.
class HttpGate {
 public:
  /// Error(kUsage) for an empty API key.
  explicit HttpGate(const HttpOptions& options);

  /// The answer to a request that goes no further: a refusal, or that of a CORS preflight. Sets
  /// `request.client` otherwise.
  std::optional<HttpAnswer> check(HttpRequest& request) const;

  /// For every answer to the request, so that a page of an allowed origin may read it.
  HttpHeaders cors_headers(const HttpRequest& request) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view key);
  bool allows_origin(const HttpRequest& request) const;
  HttpAnswer preflight(const HttpRequest& request) const;
  size_t find_key(std::string_view key) const;

  std::vector<Digest> keys_;
  std::vector<std::string> public_paths_;
  std::vector<std::string> origins_;
  bool any_origin_;
};

}  // namespace orthrus
