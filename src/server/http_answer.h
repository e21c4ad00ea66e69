#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orthrus {

/// Name and value, in order. Names of our own are written in lower case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// A whole answer, or the head of a streamed one (`body` empty then). Length, connection, date and
/// request id are added when it is sent.
struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

}  // namespace orthrus
