#include "server/http_gate.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "orthrus/error.h"

namespace orthrus {
namespace {

HttpRequest request(const char* method, const char* path, HttpHeaders headers = {}) {
  HttpRequest out;
  out.method = method;
  out.path = path;
  out.headers = std::move(headers);
  out.address = "10.0.0.1";
  return out;
}

int status(const HttpGate& gate, HttpRequest asked) {
  const auto answer = gate.check(asked);
  return answer ? answer->status : 0;
}

std::string client(const HttpGate& gate, HttpRequest asked) {
  EXPECT_FALSE(gate.check(asked));
  return asked.client;
}

std::map<std::string, std::string> by_name(const HttpHeaders& headers) {
  return {headers.begin(), headers.end()};
}

TEST(HttpGate, ApiKeys) {
  HttpOptions options;
  options.api_keys = {"alpha", "beta"};
  const HttpGate gate(options);
  EXPECT_EQ(client(gate, request("POST", "/x", {{"authorization", "Bearer alpha"}})), "key-1");
  EXPECT_EQ(client(gate, request("POST", "/x", {{"authorization", "bearer  beta"}})), "key-2");
  EXPECT_EQ(client(gate, request("POST", "/x", {{"x-api-key", "beta"}})), "key-2");
  for (const char* wrong : {"Bearer alph", "Bearer alphaa", "Bearer ", "Bearer", "alpha",
                            "Basic alpha", "Bearer Alpha", ""}) {
    EXPECT_EQ(status(gate, request("POST", "/x", {{"authorization", wrong}})), 401) << wrong;
  }
  EXPECT_EQ(status(gate, request("POST", "/x", {{"x-api-key", ""}})), 401);
  HttpRequest none = request("GET", "/x");
  const auto answer = gate.check(none);
  ASSERT_TRUE(answer);
  EXPECT_EQ(by_name(answer->headers)["www-authenticate"], "Bearer realm=\"orthrus\"");
  EXPECT_NE(answer->body.find("\"code\":\"invalid_api_key\""), std::string::npos);
}

TEST(HttpGate, PublicPaths) {
  HttpOptions options;
  options.api_keys = {"alpha"};
  const HttpGate gate(options);
  EXPECT_EQ(client(gate, request("GET", "/health")), "10.0.0.1");
  EXPECT_EQ(client(gate, request("GET", "/", {{"x-api-key", "wrong"}})), "10.0.0.1");
  EXPECT_EQ(status(gate, request("GET", "/health/")), 401);
  EXPECT_EQ(status(gate, request("GET", "/Health")), 401);
}

TEST(HttpGate, WithoutKeysTheAddressIsTheClient) {
  const HttpGate gate{HttpOptions()};
  EXPECT_EQ(client(gate, request("POST", "/x", {{"authorization", "Bearer made-up"}})), "10.0.0.1");
  HttpOptions empty_key;
  empty_key.api_keys = {""};
  EXPECT_THROW(HttpGate{empty_key}, Error);
}

TEST(HttpGate, CorsIsOffByDefault) {
  const HttpGate gate{HttpOptions()};
  HttpRequest page = request("GET", "/x", {{"origin", "https://a.example"}});
  EXPECT_TRUE(gate.cors_headers(page).empty());
  EXPECT_EQ(status(gate, std::move(page)), 0);
}

TEST(HttpGate, Cors) {
  HttpOptions options;
  options.cors_origins = {"https://a.example"};
  options.api_keys = {"alpha"};
  const HttpGate gate(options);
  const HttpRequest page = request("GET", "/x", {{"origin", "https://a.example"}});
  auto headers = by_name(gate.cors_headers(page));
  EXPECT_EQ(headers["access-control-allow-origin"], "https://a.example");
  EXPECT_EQ(headers["vary"], "Origin");
  headers = by_name(gate.cors_headers(request("GET", "/x", {{"origin", "https://b.example"}})));
  EXPECT_EQ(headers.count("access-control-allow-origin"), 0u);
  EXPECT_EQ(headers["vary"], "Origin");

  HttpRequest preflight = request("OPTIONS", "/x",
                                  {{"origin", "https://a.example"},
                                   {"access-control-request-method", "POST"},
                                   {"access-control-request-headers", "authorization,x-own"}});
  const auto answer = gate.check(preflight);  // without a key
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  headers = by_name(answer->headers);
  EXPECT_EQ(headers["access-control-allow-headers"], "authorization,x-own");
  EXPECT_EQ(headers["access-control-allow-methods"], "GET, HEAD, POST, OPTIONS");
  preflight.headers[0].second = "https://b.example";
  EXPECT_EQ(status(gate, std::move(preflight)), 401);

  options.cors_origins = {"*"};
  headers = by_name(HttpGate(options).cors_headers(page));
  EXPECT_EQ(headers["access-control-allow-origin"], "*");
  EXPECT_EQ(headers.count("vary"), 0u);
}

// A page of any site can make a browser send a POST; what the answer costs is harm enough.
TEST(HttpGate, PagesOfOtherOriginsMayNotPost) {
  HttpOptions options;
  options.cors_origins = {"https://a.example"};
  const HttpGate gate(options);
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(status(gate, request("POST", "/x", {{"sec-fetch-site", site}})), 403);
    EXPECT_EQ(status(gate, request("POST", "/x",
                                   {{"sec-fetch-site", site}, {"origin", "https://b.example"}})),
              403);
    EXPECT_EQ(status(gate, request("POST", "/x",
                                   {{"sec-fetch-site", site}, {"origin", "https://a.example"}})),
              0);
    EXPECT_EQ(status(gate, request("GET", "/x", {{"sec-fetch-site", site}})), 0);
  }
  EXPECT_EQ(status(gate, request("POST", "/x", {{"sec-fetch-site", "same-origin"}})), 0);
  EXPECT_EQ(status(gate, request("POST", "/x", {{"sec-fetch-site", "none"}})), 0);
  EXPECT_EQ(status(gate, request("POST", "/x")), 0);  // no browser
}

}  // namespace
}  // namespace orthrus
