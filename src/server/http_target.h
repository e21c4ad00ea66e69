#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orthrus {

/// What the first line of a request asks for.
struct HttpTarget {
  std::string path;  ///< percent-decoded; "*" for the whole server
  std::vector<std::pair<std::string, std::string>> query;
};

/// Takes "/path?query", "http://host/path?query" and "*" (RFC 9112, 3.2). Error(kInput) for
/// anything else, for wrong percent escapes and for control characters in the path.
HttpTarget parse_http_target(std::string_view target);

}  // namespace orthrus
