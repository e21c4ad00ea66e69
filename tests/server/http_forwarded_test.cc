#include "server/http_forwarded.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

constexpr const char* kName = "x-forwarded-for";

std::string client(const std::vector<std::string>& trusted, const std::string& peer,
                   const std::vector<std::string>& values) {
  HttpHeaders headers = {{"host", "localhost"}};
  for (const std::string& value : values) headers.emplace_back(kName, value);
  return HttpForwarded(trusted).client(peer, headers);
}

TEST(HttpForwarded, OnlyTrustedPeersSayWhoAsks) {
  EXPECT_EQ(client({}, "10.0.0.1", {"1.2.3.4"}), "10.0.0.1");
  EXPECT_EQ(client({"10.0.0.2"}, "10.0.0.1", {"1.2.3.4"}), "10.0.0.1");
  EXPECT_EQ(client({"10.0.0.1"}, "10.0.0.1", {"1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client({"10.0.0.1"}, "10.0.0.1", {}), "10.0.0.1");
  EXPECT_EQ(client({"*"}, "10.0.0.1", {"1.2.3.4"}), "1.2.3.4");
}

TEST(HttpForwarded, TheLastThatIsNotTrusted) {
  const std::vector<std::string> proxies = {"10.0.0.1", "10.0.0.2"};
  // The client itself has sent 6.6.6.6, or anything.
  EXPECT_EQ(client(proxies, "10.0.0.1", {"6.6.6.6, 1.2.3.4 ,10.0.0.2"}), "1.2.3.4");
  EXPECT_EQ(client(proxies, "10.0.0.1", {"rubbish, 1.2.3.4, 10.0.0.2"}), "1.2.3.4");
  EXPECT_EQ(client(proxies, "10.0.0.1", {"6.6.6.6", "1.2.3.4", "10.0.0.2"}), "1.2.3.4");
  EXPECT_EQ(client(proxies, "10.0.0.1", {"10.0.0.2, 10.0.0.1"}), "10.0.0.2");
  EXPECT_EQ(client({"*"}, "10.0.0.1", {"6.6.6.6, 1.2.3.4"}), "6.6.6.6");
}

TEST(HttpForwarded, WhatIsMalformedIsIgnored) {
  for (const char* value : {"", ",", "unknown", "1.2.3", "1.2.3.4:", "1.2.3.4:http", "1.2.3.4,",
                            "[::1", "[]", "[::1]80", "for=1.2.3.4", "1.2.3.4\x01"}) {
    EXPECT_EQ(client({"10.0.0.1"}, "10.0.0.1", {value}), "10.0.0.1") << value;
  }
  EXPECT_EQ(client({"*"}, "10.0.0.1", {"rubbish, 1.2.3.4"}), "10.0.0.1");
  EXPECT_EQ(client({"*"}, "10.0.0.1", {std::string(10'000, ',')}), "10.0.0.1");
}

TEST(HttpForwarded, AddressesHaveOneSpelling) {
  EXPECT_EQ(client({"2001:DB8:0::1"}, "2001:db8::1", {"::ffff:1.2.3.4"}), "1.2.3.4");
  EXPECT_EQ(client({"::ffff:10.0.0.1"}, "10.0.0.1", {"2001:DB8::0:2"}), "2001:db8::2");
  // With what some proxies add.
  for (const char* value : {"1.2.3.4:5678", "[::ffff:1.2.3.4]:443", "[::ffff:1.2.3.4]"}) {
    EXPECT_EQ(client({"10.0.0.1", " ::1"}, "::1", {value}), "1.2.3.4") << value;
  }
  EXPECT_EQ(client({"*"}, "10.0.0.1", {"fe80::1%1"}), "fe80::1");
  EXPECT_THROW(HttpForwarded({"proxy.example"}), Error);
  EXPECT_THROW(HttpForwarded({"10.0.0.0/8"}), Error);
  EXPECT_THROW(HttpForwarded({""}), Error);
}

}  // namespace
}  // namespace orthrus
