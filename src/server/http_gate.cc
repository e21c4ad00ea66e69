#include "server/http_gate.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <strings.h>

#include <algorithm>

#include "base/error.h"
#include "server/http_error.h"

namespace orthrus {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// The key of "Authorization: Bearer KEY" or "X-Api-Key: KEY"; "" where there is none.
std::string_view sent_key(const HttpRequest& request) {
  if (const std::string* value = request.header("authorization")) {
    constexpr std::string_view kScheme = "bearer ";
    if (::strncasecmp(value->c_str(), kScheme.data(), kScheme.size()) != 0) return {};
    std::string_view key = *value;
    key.remove_prefix(std::min(key.find_first_not_of(' ', kScheme.size()), key.size()));
    return key;
  }
  const std::string* value = request.header("x-api-key");
  return value ? std::string_view(*value) : std::string_view();
}

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

/// Whether a page of another origin sends it, as browsers tell by themselves.
bool is_cross_origin(const HttpRequest& request) {
  const std::string* site = request.header("sec-fetch-site");
  return site && *site != "same-origin" && *site != "none";
}

}  // namespace

HttpGate::HttpGate(const HttpOptions& options)
    : public_paths_(options.public_paths),
      origins_(options.cors_origins),
      any_origin_(contains(options.cors_origins, "*")) {
  for (const std::string& key : options.api_keys) {
    if (key.empty()) fail_usage("API key: expected some characters, found none");
    keys_.push_back(digest(key));
  }
}

HttpGate::Digest HttpGate::digest(std::string_view key) {
  Digest out;
  unsigned int size = 0;
  ORTHRUS_CHECK(EVP_Digest(key.data(), key.size(), out.data(), &size, EVP_sha256(), nullptr) == 1);
  return out;
}

/// Counts from 1; 0 where the key is none of ours. Takes as long for any key of the same length.
size_t HttpGate::find_key(std::string_view key) const {
  const Digest sent = digest(key);
  size_t found = 0;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (CRYPTO_memcmp(sent.data(), keys_[i].data(), sent.size()) == 0) found = i + 1;
  }
  return found;
}

bool HttpGate::allows_origin(const HttpRequest& request) const {
  const std::string* origin = request.header("origin");
  return origin && (any_origin_ || contains(origins_, *origin));
}

HttpHeaders HttpGate::cors_headers(const HttpRequest& request) const {
  if (origins_.empty()) return {};
  HttpHeaders headers;
  if (!any_origin_) headers.emplace_back("vary", "Origin");
  if (allows_origin(request)) {
    headers.emplace_back("access-control-allow-origin",
                         any_origin_ ? "*" : *request.header("origin"));
    headers.emplace_back("access-control-expose-headers", "x-request-id, retry-after");
  }
  return headers;
}

HttpAnswer HttpGate::preflight(const HttpRequest& request) const {
  HttpAnswer answer{.status = 204};
  answer.headers.emplace_back("access-control-allow-methods", "GET, HEAD, POST, OPTIONS");
  // Client libraries send headers of their own, and "*" would leave out Authorization.
  const std::string* asked = request.header("access-control-request-headers");
  answer.headers.emplace_back("access-control-allow-headers",
                              asked ? *asked : "authorization, content-type");
  answer.headers.emplace_back("access-control-max-age", "600");
  return answer;
}

std::optional<HttpAnswer> HttpGate::check(HttpRequest& request) const {
  const bool allowed_origin = allows_origin(request);
  // Browsers send a preflight without any key.
  if (allowed_origin && request.method == "OPTIONS" &&
      request.header("access-control-request-method")) {
    return preflight(request);
  }
  // Without this any page on the web could make a browser post here: not to read the answer, but
  // to have it computed.
  if (!allowed_origin && !is_safe(request.method) && is_cross_origin(request)) {
    return error_answer(403,
                        "requests from pages of other origins are not allowed (see --cors-origin)",
                        "origin_not_allowed");
  }
  request.client = request.address;
  if (keys_.empty()) return std::nullopt;
  const std::string_view key = sent_key(request);
  const size_t number = key.empty() ? 0 : find_key(key);
  if (number > 0) {
    request.client = fmt::format("key-{}", number);
  } else if (!contains(public_paths_, request.path)) {
    HttpAnswer answer =
        error_answer(401,
                     key.empty() ? "an API key is needed, as \"Authorization: Bearer KEY\""
                                 : "the API key is not one of this server's",
                     "invalid_api_key");
    answer.headers.emplace_back("www-authenticate", "Bearer realm=\"orthrus\"");
    return answer;
  }
  return std::nullopt;
}

}  // namespace orthrus
