#include "server/http_server.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "http_client.h"
#include "http_test_server.h"

namespace orthrus {
namespace {

const std::string kWho = "GET /who HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kWait = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestServer server;
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const ClientAnswer answer =
        client.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
  }
  EXPECT_EQ(server.server.connections(), 1);
}

TEST(HttpServer, RequestIds) {
  TestServer server;
  RawClient client(server.port());
  ClientAnswer answer = client.ask("GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine-1\r\n\r\n");
  EXPECT_EQ(answer.body, "127.0.0.1 mine-1");
  EXPECT_EQ(answer.headers.at("x-request-id"), "mine-1");
  answer = client.ask("GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: not mine\r\n\r\n");
  EXPECT_EQ(answer.body, "127.0.0.1 " + answer.headers.at("x-request-id"));
  EXPECT_TRUE(answer.headers.at("x-request-id").starts_with("req-"));
}

TEST(HttpServer, AProxySaysWhoAsks) {
  const std::string asked =
      "GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: r\r\n"
      "X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n\r\n";
  HttpOptions options = test_options();
  TestServer believes_nobody(options);
  EXPECT_EQ(RawClient(believes_nobody.port()).ask(asked).body, "127.0.0.1 r");
  options.forwarded_allow_ips = {"127.0.0.1"};
  TestServer server(options);
  RawClient client(server.port());
  EXPECT_EQ(client.ask(asked).body, "1.2.3.4 r");
  // The next request of the proxy's connection is another client's.
  EXPECT_EQ(client.ask("GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: s\r\n\r\n").body,
            "127.0.0.1 s");
}

TEST(HttpServer, LargeBodies) {
  TestServer server;
  RawClient client(server.port());
  std::string body(5 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
  std::thread sender([&] {
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
  });
  const ClientAnswer answer = client.read_answer();
  sender.join();
  EXPECT_TRUE(answer.body == body);
}

TEST(HttpServer, ChunkedRequest) {
  TestServer server;
  RawClient client(server.port());
  EXPECT_EQ(client
                .ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                .body,
            "abcde");
}

TEST(HttpServer, ExpectContinue) {
  TestServer server;
  RawClient client(server.port());
  ClientAnswer answer = client.ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(answer.status, 100);
  EXPECT_EQ(client.ask("ok").body, "ok");
  // One who does not want the body says so instead.
  EXPECT_EQ(client
                .ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 99999999\r\n\r\n")
                .status,
            413);
}

TEST(HttpServer, Pipelining) {
  TestServer server;
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 1000; ++i) {
    requests += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n" +
                std::to_string(100 + i % 900) + (i % 7 ? "" : "\r\n");
  }
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(client.read_answer().body, std::to_string(100 + i % 900));
  sender.join();
}

TEST(HttpServer, PipelinedRequestsWaitForTheReplyBefore) {
  TestServer server;
  RawClient client(server.port());
  client.send(kWait + kWho);
  const auto reply = server.next_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(server.handled, 1);
  reply->send({.body = "first"});
  EXPECT_EQ(client.read_answer().body, "first");
  EXPECT_TRUE(client.read_answer().body.starts_with("127.0.0.1 "));
}

TEST(HttpServer, Http10) {
  TestServer server;
  RawClient client(server.port());
  const ClientAnswer answer = client.ask("GET /who HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.ends());

  RawClient kept(server.port());
  EXPECT_EQ(
      kept.ask("GET /who HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").headers.at("connection"),
      "keep-alive");
  EXPECT_EQ(kept.ask(kWho).status, 200);

  RawClient streaming(server.port());
  streaming.send("GET /wait HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto reply = server.next_reply();
  reply->begin_stream({.content_type = "text/plain"});
  reply->write("one ");
  reply->write("two");
  reply->end();
  const ClientAnswer stream = streaming.read_answer();
  EXPECT_EQ(stream.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(stream.body, "one two");
}

TEST(HttpServer, Streams) {
  TestServer server;
  RawClient client(server.port());
  client.send(kWait);
  const auto reply = server.next_reply();
  reply->begin_stream({.content_type = "text/event-stream"});
  ASSERT_TRUE(client.read_until("\r\n\r\n"));  // before there is anything to write
  EXPECT_NE(client.input().find("x-accel-buffering: no\r\n"), std::string::npos);
  reply->write("data: 1\n\n");
  ASSERT_TRUE(client.read_until("data: 1\n\n"));
  for (int i = 2; i <= 500; ++i) reply->write("data: " + std::to_string(i) + "\n\n");
  reply->end();
  const ClientAnswer answer = client.read_answer();
  EXPECT_TRUE(answer.whole);
  std::string expected;
  for (int i = 1; i <= 500; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  EXPECT_EQ(answer.body, expected);
  EXPECT_EQ(client.ask(kWho).status, 200);  // and the connection goes on
  EXPECT_TRUE(eventually([&] { return server.server.open_replies() == 0; }));
}

TEST(HttpServer, HeadHasNoBody) {
  TestServer server;
  RawClient client(server.port());
  client.send("HEAD /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: r\r\n\r\n" + kWho);
  const ClientAnswer head = client.read_answer(true);
  EXPECT_EQ(head.headers.at("content-length"), "11");
  EXPECT_EQ(client.read_answer().status, 200);
  client.send("HEAD /wait HTTP/1.1\r\nHost: a\r\n\r\n" + kWho);
  const auto reply = server.next_reply();
  reply->begin_stream({});
  reply->write("not sent");
  reply->end();
  EXPECT_EQ(client.read_answer(true).status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(HttpServer, RepliesThatNobodyGives) {
  TestServer server;
  RawClient client(server.port());
  client.send(kWait);
  server.next_reply().reset();
  EXPECT_EQ(client.read_answer().status, 500);
  client.send(kWait);
  auto reply = server.next_reply();
  reply->begin_stream({});
  reply->write("half");
  reply.reset();
  const ClientAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.whole);
}

TEST(HttpServer, HandlersThatThrow) {
  HttpServer server(test_options(), [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/input") fail("no \"x\"");
    if (request.path == "/late") reply->begin_stream({});
    if (request.path == "/answered") reply->send({.body = "ok"});
    throw std::runtime_error("oh");
  });
  spdlog::set_level(spdlog::level::off);
  RawClient client(server.port());
  ClientAnswer answer = client.ask("GET /input HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("no \\\"x\\\""), std::string::npos);
  EXPECT_EQ(client.ask("GET /other HTTP/1.1\r\nHost: a\r\n\r\n").status, 500);
  EXPECT_EQ(client.ask("GET /answered HTTP/1.1\r\nHost: a\r\n\r\n").body, "ok");
  EXPECT_FALSE(client.ask("GET /late HTTP/1.1\r\nHost: a\r\n\r\n").whole);
  spdlog::set_level(spdlog::level::info);
}

TEST(HttpServer, GateBeforeTheBody) {
  HttpOptions options = test_options();
  options.api_keys = {"secret-key"};
  options.cors_origins = {"https://a.example"};
  TestServer server(options);
  RawClient client(server.port());
  EXPECT_EQ(client.ask(kWho).status, 401);
  ClientAnswer answer = client.ask(
      "GET /who HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret-key\r\n"
      "X-Request-Id: r\r\nOrigin: https://a.example\r\n\r\n");
  EXPECT_EQ(answer.body, "key-1 r");
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://a.example");
  answer = client.ask(
      "OPTIONS /who HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://a.example");
  // The body of one without a key is not waited for.
  answer = client.ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n"
      "Origin: https://a.example\r\n\r\n");
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(server.handled, 1);
}

TEST(HttpServer, AccessLog) {
  HttpOptions options = test_options();
  options.access_log = true;
  options.api_keys = {"secret-key"};
  options.quiet_paths = {"/who"};
  options.forwarded_allow_ips = {"127.0.0.1"};
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  spdlog::set_pattern("%v");
  {
    TestServer server(options);
    RawClient client(server.port());
    client.ask(
        "POST /echo?key=secret-key HTTP/1.1\r\nHost: a\r\nX-Request-Id: r1\r\n"
        "X-Api-Key: secret-key\r\nContent-Length: 4\r\n\r\nbody");
    client.ask("GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: r4\r\nX-Api-Key: secret-key\r\n\r\n");
    client.ask(
        "GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: r5\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n");
    client.ask("GET /caf%C3%A9 HTTP/1.1\r\nHost: a\r\nX-Request-Id: r2\r\n\r\n");
    client.send(
        "GET /wait HTTP/1.1\r\nHost: a\r\nX-Request-Id: r3\r\nX-Api-Key: secret-key\r\n\r\n");
    const auto reply = server.next_reply();
    client.close();
    EXPECT_TRUE(eventually([&] { return reply->closed(); }));
    RawClient(server.port()).ask("rubbish\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return server.server.open_replies() == 0; }));
  }
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  EXPECT_NE(text.find("r1 127.0.0.1 POST /echo 200 4 B "), std::string::npos) << text;
  EXPECT_NE(text.find("r2 127.0.0.1 GET /caf?? 401 "), std::string::npos) << text;
  EXPECT_EQ(text.find("r4 "), std::string::npos) << text;
  EXPECT_NE(text.find("r5 1.2.3.4 GET /who 401 "), std::string::npos) << text;
  EXPECT_NE(text.find("r3 127.0.0.1 GET /wait 499 0 B "), std::string::npos) << text;
  EXPECT_NE(text.find(" 127.0.0.1 - - 400 "), std::string::npos) << text;
  EXPECT_EQ(text.find("secret-key"), std::string::npos) << text;
}

TEST(HttpServer, Addresses) {
  TestServer first;
  HttpOptions options = test_options();
  options.port = first.port();
  try {
    TestServer second(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "cannot listen on 127.0.0.1, port " +
                                             std::to_string(first.port()) +
                                             ": Address already in use");
  }
  for (const char* wrong : {"999.1.1.1", "", "no such host"}) {
    options.host = wrong;
    EXPECT_THROW(TestServer{options}, Error) << wrong;
  }
  options.host = "192.0.2.1";  // of no machine
  options.port = 0;
  EXPECT_THROW(TestServer{options}, Error);
  for (const char* host : {"0.0.0.0", "localhost", "::", "[::]"}) {
    options.host = host;
    try {
      TestServer server(options);
      EXPECT_EQ(RawClient(server.port())
                    .ask("GET /who HTTP/1.1\r\nHost: a\r\nX-Request-Id: r\r\n\r\n")
                    .body,
                "127.0.0.1 r")
          << host;
    } catch (const Error& error) {  // a machine without IPv6
      EXPECT_NE(std::string(host).find(':'), std::string::npos) << error.what();
    }
  }
}

TEST(HttpServer, WrongOptions) {
  HttpOptions options = test_options();
  options.io_threads = 0;
  EXPECT_THROW(TestServer{options}, Error);
  options = test_options();
  options.max_connections = 0;
  EXPECT_THROW(TestServer{options}, Error);
}

}  // namespace
}  // namespace orthrus
