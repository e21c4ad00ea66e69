#include "hub/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

namespace orthrus {
namespace {

struct UrlCleanup {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using UrlHandle = std::unique_ptr<CURLU, UrlCleanup>;

/// nullptr where it cannot be parsed.
UrlHandle parse(const std::string& url) {
  UrlHandle handle(curl_url());
  // Any scheme: what a redirect names is judged by its scheme, not by what this curl was built for.
  if (handle && curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
                    CURLUE_OK) {
    handle.reset();
  }
  return handle;
}

std::string part(const UrlHandle& url, CURLUPart what, unsigned int flags = 0) {
  char* text = nullptr;
  if (!url || curl_url_get(url.get(), what, &text, flags) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

}  // namespace

std::string url_escape(std::string_view text, bool keep_slashes) {
  std::string out;
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain || (keep_slashes && c == '/')) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string url_origin(const std::string& url) {
  const UrlHandle handle = parse(url);
  const std::string scheme = part(handle, CURLUPART_SCHEME);
  std::string host = part(handle, CURLUPART_HOST);
  if ((scheme != "http" && scheme != "https") || host.empty()) return {};
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return fmt::format("{}://{}:{}", scheme, host, part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string url_resolve(const std::string& base, const std::string& location) {
  const UrlHandle handle = parse(base);
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, location.c_str(),
                              CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return {};
  }
  return part(handle, CURLUPART_URL);
}

std::string url_without_query(const std::string& url) {
  return url.substr(0, url.find_first_of("?#"));
}

}  // namespace orthrus
