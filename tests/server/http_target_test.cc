#include "server/http_target.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(HttpTarget, PathAndQuery) {
  const HttpTarget target = parse_http_target("/v1/models?a=1&b=x+y%26&c&&=d&a=2");
  EXPECT_EQ(target.path, "/v1/models");
  EXPECT_EQ(target.query, (Pairs{{"a", "1"}, {"b", "x y&"}, {"c", ""}, {"", "d"}, {"a", "2"}}));
}

TEST(HttpTarget, PercentEscapes) {
  EXPECT_EQ(parse_http_target("/a%2fb+%C3%a9").path, "/a/b+\xc3\xa9");
  EXPECT_EQ(parse_http_target("/?q=%00").query, (Pairs{{"q", std::string(1, '\0')}}));
}

TEST(HttpTarget, OtherForms) {
  EXPECT_EQ(parse_http_target("*").path, "*");
  EXPECT_EQ(parse_http_target("http://host:80/x?y=z").path, "/x");
  EXPECT_EQ(parse_http_target("http://host").path, "/");
  const HttpTarget bare = parse_http_target("http://host?y=z");
  EXPECT_EQ(bare.path, "/");
  EXPECT_EQ(bare.query, (Pairs{{"y", "z"}}));
}

TEST(HttpTarget, Refused) {
  for (const char* wrong : {"", "x", "?", "host:443", "ftp://host/", "/%", "/%1", "/%1g", "/%g1",
                            "/%00", "/%0a", "/%7f", "/?a=%", "/?%zz=1", "**"}) {
    EXPECT_THROW(parse_http_target(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace orthrus
