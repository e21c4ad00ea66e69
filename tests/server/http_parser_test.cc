#include "server/http_parser.h"

#include <gtest/gtest.h>

#include <utility>

#include <string>

namespace orthrus {
namespace {

using Step = HttpParser::Step;

struct Parsed {
  Step step = Step::kMore;
  int status = 0;  // of the refusal
  HttpRequest request;
  std::string rest;

  bool operator==(const Parsed& other) const {
    return step == other.step && status == other.status && request.body == other.request.body &&
           request.headers == other.request.headers && rest == other.rest;
  }
};

constexpr size_t kHeaderLimit = 400;
constexpr size_t kBodyLimit = 100;

// Bytes that come in pieces of `piece`, but the first one in `first`.
Parsed parse(const std::string& bytes, size_t first, size_t piece) {
  HttpParser parser(kHeaderLimit, kBodyLimit);
  Parsed out;
  std::string input;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = at == 0 ? first : piece;
    input += bytes.substr(at, size);
    at += size;
    do {
      size_t used = 0;
      out.step = parser.put(input, used);
      input.erase(0, used);
    } while (out.step == Step::kHeader);
    if (out.step != Step::kMore) {
      out.rest = input + (at < bytes.size() ? bytes.substr(at) : "");
      break;
    }
  }
  out.request = std::move(parser.request());
  if (out.step == Step::kRefused) {
    out.status = parser.refusal().status;
    out.rest.clear();
  }
  return out;
}

// However the bytes are cut, the same comes out. What is wrong may be noticed only when more has
// come, but never passes.
Parsed parse(const std::string& bytes) {
  Parsed whole = parse(bytes, bytes.size(), 1);
  for (size_t first = 1; first < bytes.size(); ++first) {
    for (const size_t piece : {bytes.size(), size_t{1}}) {
      const Parsed cut = parse(bytes, first, piece);
      const bool later = whole.step == Step::kRefused && cut.step != Step::kComplete;
      EXPECT_TRUE(later || whole == cut) << first << ", " << piece << ": " << bytes;
    }
  }
  return whole;
}

constexpr const char* kHost = "Host: a\r\n";

std::string post(const std::string& headers, const std::string& body) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body;
}

TEST(HttpParser, RequestsInAnyPieces) {
  const Parsed get = parse("GET /a%20b?c=d HTTP/1.1\r\nHost: a\r\nX-Some: thing \r\n\r\nGET /");
  EXPECT_EQ(get.step, Step::kComplete);
  EXPECT_EQ(get.request.method, "GET");
  EXPECT_EQ(get.request.path, "/a b");
  EXPECT_EQ(*get.request.parameter("c"), "d");
  EXPECT_EQ(*get.request.header("x-some"), "thing");
  EXPECT_EQ(get.request.header("X-Some"), nullptr);
  EXPECT_EQ(get.rest, "GET /");

  EXPECT_EQ(parse(post("Content-Length: 5\r\n", "helloGET")).request.body, "hello");
  EXPECT_EQ(parse(post("Content-Length: 5\r\n", "hell")).step, Step::kMore);
}

TEST(HttpParser, Chunks) {
  const std::string chunked = "Transfer-Encoding: Chunked\r\n";
  EXPECT_EQ(
      parse(post(chunked, "3\r\nabc\r\n0a;x=\"y\"\r\n0123456789\r\n0\r\n\r\nrest")).request.body,
      "abc0123456789");
  EXPECT_EQ(parse(post(chunked, "0\r\n\r\n")).step, Step::kComplete);  // an assertion of Beast
  for (const char* wrong : {"x\r\n", "-1\r\nabc\r\n", " 3\r\nabc\r\n", "0x3\r\nabc\r\n\r\n",
                            "\r\nabc", "3\r\nabcd\r\n0\r\n\r\n", "ffffffffffffffffff\r\n",
                            "3 3\r\nabc\r\n", "3\nabc\r\n0\r\n\r\n"}) {
    const Parsed parsed = parse(post(chunked, wrong));
    EXPECT_EQ(parsed.step, Step::kRefused) << wrong;
    EXPECT_EQ(parsed.status, 400) << wrong;
  }
}

TEST(HttpParser, TrailersAreNoHeaders) {
  const Parsed parsed = parse(
      post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nAuthorization: Bearer k\r\n\r\n"));
  EXPECT_EQ(parsed.step, Step::kComplete);
  EXPECT_EQ(parsed.request.header("authorization"), nullptr);
}

TEST(HttpParser, Limits) {
  const std::string big(kHeaderLimit, 'x');
  EXPECT_EQ(parse("GET /" + big).status, 431);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: a\r\nX: " + big).status, 431);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: a\r\nX: " + big + "\r\n\r\n").status, 431);
  EXPECT_EQ(parse(post("Content-Length: 101\r\n", "")).status, 413);
  EXPECT_EQ(parse(post("Content-Length: 100\r\n", std::string(100, 'x'))).step, Step::kComplete);
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(parse(post(chunked, "65\r\n")).status, 413);
  EXPECT_EQ(parse(post(chunked, "33\r\n" + std::string(51, 'x') + "\r\n32\r\n")).status, 413);
  EXPECT_EQ(parse(post(chunked, "1;" + big)).status, 431);
  EXPECT_EQ(parse(post(chunked, "0\r\nX: " + big)).status, 431);
}

TEST(HttpParser, Malformed) {
  for (const std::string& wrong :
       {std::string("GARBAGE\r\n\r\n"), std::string("GET /\r\n\r\n"),
        std::string("GET / HTTP/2.0\r\n\r\n"), std::string("GET  / HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 28),
        std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 29),
        std::string("G\0T / HTTP/1.1\r\nHost: a\r\n\r\n", 28),
        std::string("GET / HTTP/1.1\nHost: a\n\n"), std::string("GET / HTTP/1.1\r\n: a\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n\r\n"),  // no Host
        std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        std::string("GET x HTTP/1.1\r\nHost: a\r\n\r\n"),
        std::string("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
        std::string("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)}) {  // TLS
    const Parsed parsed = parse(wrong);
    EXPECT_EQ(parsed.step, Step::kRefused) << wrong;
    EXPECT_EQ(parsed.status, 400) << wrong;
  }
  EXPECT_EQ(parse("GET / HTTP/1.0\r\n\r\n").step, Step::kComplete);  // needs no Host
}

// Two readers that take another length for the same request can be made to disagree on where the
// next one begins.
TEST(HttpParser, NoSmuggling) {
  for (const char* wrong :
       {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: 3, 4\r\n",
        "Content-Length: -3\r\n", "Content-Length: +3\r\n", "Content-Length: 3x\r\n",
        "Content-Length: \r\n", "Content-Length: 0x3\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(parse(post(wrong, "abc")).status, 400) << wrong;
  }
  for (const char* wrong :
       {"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: \r\n",
        "Transfer-Encoding: xchunked\r\n"}) {
    EXPECT_EQ(parse(post(wrong, "abc")).status, 501) << wrong;
  }
  EXPECT_EQ(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status, 400);
}

TEST(HttpParser, Expect) {
  HttpParser parser(kHeaderLimit, kBodyLimit);
  size_t used = 0;
  EXPECT_EQ(parser.put(post("Expect: 100-Continue\r\nContent-Length: 3\r\n", ""), used),
            Step::kHeader);
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(parse(post("Expect: more\r\n", "")).status, 417);
}

TEST(HttpParser, KeepsConnection) {
  const auto keeps = [](const std::string& bytes) {
    HttpParser parser(kHeaderLimit, kBodyLimit);
    size_t used = 0;
    EXPECT_EQ(parser.put(bytes, used), Step::kHeader);
    return parser.keeps_connection();
  };
  EXPECT_TRUE(keeps(std::string("GET / HTTP/1.1\r\n") + kHost + "\r\n"));
  EXPECT_FALSE(keeps(std::string("GET / HTTP/1.1\r\n") + kHost + "Connection: close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

}  // namespace
}  // namespace orthrus
