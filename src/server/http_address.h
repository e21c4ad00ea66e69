#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace orthrus {

/// "127.0.0.1" also where it came in over IPv6.
std::string address_text(const boost::asio::ip::address& address);

/// The one spelling of an address that address_text() gives; nullopt for what is none. Brackets and
/// a port, as some proxies send them, are left out, and so is a scope ("fe80::1%eth0").
std::optional<std::string> parse_address(std::string_view text);

}  // namespace orthrus
