#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http_answer.h"
#include "server/http_body_share.h"

namespace orthrus {

struct HttpRequest {
  std::string method;  ///< as sent: methods are case-sensitive
  std::string path;    ///< percent-decoded, without the query; no control characters
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order
  HttpHeaders headers;                                     ///< names in lower case
  std::string body;
  std::string address;  ///< of the client: of the peer, or whom a trusted proxy names
  std::string client;   ///< whose request it is: "key-1" for the first API key, else the address
  std::string id;       ///< 1 to 64 characters of A-Z a-z 0-9 . _ -
  /// Of the body. To be kept for as long as what is made of the body may wait for something.
  HttpBodyShare share;

  /// The first value of a header (name in lower case) or query parameter; nullptr where absent.
  const std::string* header(std::string_view name) const { return find(headers, name); }
  const std::string* parameter(std::string_view name) const { return find(query, name); }

 private:
  static const std::string* find(const HttpHeaders& pairs, std::string_view name) {
    for (const auto& [key, value] : pairs) {
      if (key == name) return &value;
    }
    return nullptr;
  }
};

}  // namespace orthrus
