#include "server/http_target.h"

#include <algorithm>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const bool whole = i + 2 < text.size();
      const int high = whole ? hex_digit(text[i + 1]) : -1;
      const int low = whole ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        fail("request target: \"%\" in \"{}\" is not followed by two hexadecimal digits",
             printable(text));
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    out.emplace_back(percent_decoded(pair.substr(0, equals), true), percent_decoded(value, true));
  }
  return out;
}

/// "/path?query" of "http://host/path?query"; `target` itself where it has no scheme.
std::string local_part(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::string_view rest =
        target.substr(std::min(target.find_first_of("/?", scheme.size()), target.size()));
    return rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  }
  return std::string(target);
}

}  // namespace

HttpTarget parse_http_target(std::string_view target) {
  if (target == "*") return {"*", {}};
  const std::string local_text = local_part(target);
  const std::string_view local = local_text;
  const size_t question = std::min(local.find('?'), local.size());
  std::string path = percent_decoded(local.substr(0, question), false);
  if (!path.starts_with('/')) {
    fail("request target: expected a path that begins with \"/\", found \"{}\"", printable(target));
  }
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fail("request target: a control character in the path \"{}\"", printable(path));
    }
  }
  return {std::move(path), parse_query(local.substr(std::min(question + 1, local.size())))};
}

}  // namespace orthrus
