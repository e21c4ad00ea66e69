#include "server/http_address.h"

namespace orthrus {

namespace ip = boost::asio::ip;

std::string address_text(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

std::optional<std::string> parse_address(std::string_view text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  return address_text(address);
}

}  // namespace orthrus
