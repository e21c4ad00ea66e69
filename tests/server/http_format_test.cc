#include "server/http_format.h"

#include <gtest/gtest.h>

#include "orthrus/error.h"
#include "server/http_error.h"

namespace orthrus {
namespace {

TEST(HttpFormat, Head) {
  const std::string head =
      http_head({.status = 404, .body = "abc", .headers = {{"retry-after", "1"}}}, {.id = "r1"});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 404 Not Found\r\ndate: ")) << head;
  EXPECT_TRUE(
      head.ends_with("\r\ncontent-type: application/json\r\ncontent-length: 3\r\n"
                     "connection: keep-alive\r\nretry-after: 1\r\n\r\n"))
      << head;
  EXPECT_NE(head.find("\r\nx-request-id: r1\r\n"), std::string::npos);
}

TEST(HttpFormat, NoLengthWithoutABody) {
  const std::string head = http_head({.status = 204}, {});
  EXPECT_EQ(head.find("\r\ncontent-"), std::string::npos) << head;
}

TEST(HttpFormat, NoHeaderEndsItsLine) {
  EXPECT_THROW(http_head({.headers = {{"a", "b\r\nc: d"}}}, {}), Error);
  EXPECT_THROW(http_head({.headers = {{"a\n", "b"}}}, {}), Error);
}

TEST(HttpFormat, Chunk) {
  EXPECT_EQ(http_chunk(std::string(17, 'x')), "11\r\n" + std::string(17, 'x') + "\r\n");
}

TEST(HttpFormat, RequestIds) {
  EXPECT_TRUE(is_request_id("aZ09._-"));
  EXPECT_TRUE(is_request_id(std::string(64, 'a')));
  for (const std::string& wrong : {std::string(), std::string(65, 'a'), std::string("a b"),
                                   std::string("a\n"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(is_request_id(wrong));
  }
  const std::string id = new_request_id();
  EXPECT_TRUE(is_request_id(id));
  EXPECT_NE(id, new_request_id());
}

TEST(HttpError, Body) {
  EXPECT_EQ(error_body("no \"x\" \xff", "t"),
            "{\"error\":{\"message\":\"no \\\"x\\\" \xef\xbf\xbd\",\"type\":\"t\",\"param\":null,"
            "\"code\":null}}");
  const HttpAnswer answer = error_answer(429, "wait", "queue_full", "n");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body,
            "{\"error\":{\"message\":\"wait\",\"type\":\"rate_limit_error\",\"param\":\"n\","
            "\"code\":\"queue_full\"}}");
  EXPECT_EQ(error_type(404), "invalid_request_error");
  EXPECT_EQ(error_type(503), "server_error");
}

}  // namespace
}  // namespace orthrus
