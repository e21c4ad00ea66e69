#include "server/http_address.h"

#include <algorithm>

namespace orthrus {

namespace ip = boost::asio::ip;

namespace {

/// "" or ":" and digits.
bool is_port(std::string_view text) {
  if (text.empty()) return true;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() >= 2 && text.size() <= 6 && text[0] == ':' &&
         std::all_of(text.begin() + 1, text.end(), digit);
}

}  // namespace

std::string address_text(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

std::optional<std::string> parse_address(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos || !is_port(text.substr(end + 1))) return std::nullopt;
    text = text.substr(1, end - 1);
  } else if (const size_t colon = text.find(':');
             colon != text.npos && text.find(':', colon + 1) == text.npos) {
    if (!is_port(text.substr(colon))) return std::nullopt;
    text = text.substr(0, colon);
  }
  text = text.substr(0, text.find('%'));
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  return address_text(address);
}

}  // namespace orthrus
