#include "hub/url.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

TEST(Url, Escapes) {
  EXPECT_EQ(url_escape("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(url_escape("a b/\xc3\xa4?#.json", true), "a%20b/%C3%A4%3F%23.json");
  EXPECT_EQ(url_escape("A-z_0.9~"), "A-z_0.9~");
}

TEST(Url, OriginsAreOfHttpAlone) {
  EXPECT_EQ(url_origin("https://Hub.Example/x?y"), "https://hub.example:443");
  EXPECT_EQ(url_origin("http://hub.example:8080"), "http://hub.example:8080");
  EXPECT_EQ(url_origin("https://hub.example@evil.example/"), "https://evil.example:443");
  for (const char* url : {"", "hub.example", "file:///etc/passwd", "ftp://a/b", "http://", "/x"}) {
    EXPECT_EQ(url_origin(url), "") << url;
  }
}

TEST(Url, LocationsResolve) {
  const std::string base = "https://hub.example/a/b?c";
  EXPECT_EQ(url_resolve(base, "/d"), "https://hub.example/d");
  EXPECT_EQ(url_resolve(base, "//cdn.example/d"), "https://cdn.example/d");
  EXPECT_EQ(url_resolve(base, "http://cdn.example/d?e=f"), "http://cdn.example/d?e=f");
  EXPECT_EQ(url_origin(url_resolve(base, "file:///etc/passwd")), "");
  EXPECT_EQ(url_without_query("https://a/b?signature=1#c"), "https://a/b");
}

}  // namespace
}  // namespace orthrus
