#include "server/http_forwarded.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/trimmed.h"
#include "formats/printable.h"
#include "server/http_address.h"

namespace orthrus {
namespace {

constexpr std::string_view kBlanks = " \t";  // of a header

}  // namespace

HttpForwarded::HttpForwarded(const std::vector<std::string>& trusted) {
  for (const std::string& untrimmed : trusted) {
    const std::string text(trimmed(untrimmed, kBlanks));
    if (text == "*") {
      everyone_ = true;
      continue;
    }
    std::optional<std::string> address = parse_address(text);
    if (!address) {
      fail_usage("--forwarded-allow-ips: expected addresses or *, found \"{}\"", printable(text));
    }
    trusted_.insert(std::move(*address));
  }
}

std::string HttpForwarded::client(const std::string& peer, const HttpHeaders& headers) const {
  std::string client = peer;
  // From the last one on, the headers and the addresses in them: what stands before the first
  // address that is not trusted may be made up.
  for (auto header = headers.rbegin(); header != headers.rend(); ++header) {
    if (header->first != "x-forwarded-for") continue;
    std::string_view rest = header->second;
    for (bool more = true; more;) {
      if (!trusts(client)) return client;
      const size_t comma = rest.rfind(',');
      more = comma != rest.npos;
      std::optional<std::string> next =
          parse_address(trimmed(more ? rest.substr(comma + 1) : rest, kBlanks));
      if (!next) return peer;
      client = std::move(*next);
      rest = rest.substr(0, more ? comma : 0);
    }
  }
  return client;
}

}  // namespace orthrus
