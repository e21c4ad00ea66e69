// Clients that do what they should not, each with a server that goes on as if nothing was.
#include <gtest/gtest.h>

#include <atomic>

#include "http_client.h"
#include "http_test_server.h"

namespace orthrus {
namespace {

using std::chrono::milliseconds;

const std::string kWho = "GET /who HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kWait = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class HttpAttack : public testing::Test {
 protected:
  static HttpOptions options() {
    HttpOptions out = test_options();
    out.header_timeout = milliseconds(300);
    out.body_timeout = milliseconds(300);
    out.idle_timeout = milliseconds(600);
    out.write_timeout = milliseconds(600);
    out.linger_timeout = std::chrono::seconds(10);  // a busy machine takes 100 MB slowly
    out.max_body_bytes = 1 << 20;
    return out;
  }

  void TearDown() override {
    RawClient client(server_.port());
    EXPECT_EQ(client.ask(kWho).status, 200);
    client.close();
    EXPECT_TRUE(eventually([&] { return server_.server.open_replies() == 0; }));
    EXPECT_TRUE(eventually([&] { return server_.server.connections() == 0; }));
  }

  TestServer server_{options()};
};

TEST_F(HttpAttack, MalformedRequests) {
  for (const std::string& wrong :
       {std::string("\0\0\0\0\r\n\r\n", 8), std::string("GET / HTTP/1.1\r\nHost: a\r\nbad\r\n\r\n"),
        std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string(
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    RawClient client(server_.port());
    const ClientAnswer answer = client.ask(wrong);
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_TRUE(answer.body.starts_with("{\"error\":{\"message\":\"malformed HTTP request: "))
        << answer.body;
    EXPECT_TRUE(client.ends());
  }
}

TEST_F(HttpAttack, LargeHeader) {
  RawClient client(server_.port());
  EXPECT_EQ(client.ask("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1 << 20, 'x')).status, 431);
  RawClient target(server_.port());
  EXPECT_EQ(target.ask("GET /" + std::string(1 << 20, 'x')).status, 431);
}

// The answer arrives although the client sends all of its 100 MB first.
TEST_F(HttpAttack, LargeBody) {
  const std::string megabyte(1 << 20, 'x');
  for (const std::string& kind : {std::string("Content-Length: 104857600\r\n\r\n"),
                                  std::string("Transfer-Encoding: chunked\r\n\r\n6400000\r\n")}) {
    RawClient client(server_.port());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\n" + kind);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.send(megabyte)) << i;
    EXPECT_EQ(client.read_answer().status, 413);
    EXPECT_TRUE(client.ends());
  }
  RawClient waiting(server_.port());  // who sends nothing is told, too
  EXPECT_EQ(
      waiting.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\n").status,
      413);
  EXPECT_EQ(server_.handled, 0);
}

TEST_F(HttpAttack, ManySmallChunks) {
  RawClient client(server_.port());
  std::string body;
  for (int i = 0; i < 20000; ++i) body += "1;" + std::string(20, 'e') + "\r\nx\r\n";
  EXPECT_EQ(client
                .ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body +
                     "0\r\n\r\n")
                .body.size(),
            20000u);
}

TEST_F(HttpAttack, SlowHeader) {
  const auto start = std::chrono::steady_clock::now();
  RawClient client(server_.port());
  for (const char c : kWho.substr(0, 20)) {  // a byte now and then holds nothing open
    if (!client.send(std::string(1, c))) break;
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(client.read_answer().status, 408);
  EXPECT_TRUE(client.ends());
  EXPECT_LT(seconds_since(start), 5);
}

TEST_F(HttpAttack, SlowBody) {
  RawClient client(server_.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    client.send("x");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(client.read_answer().status, 408);
  EXPECT_TRUE(client.ends());
}

TEST_F(HttpAttack, SilentClients) {
  RawClient fresh(server_.port());
  RawClient used(server_.port());
  EXPECT_EQ(used.ask(kWho).status, 200);
  EXPECT_EQ(fresh.read_some(), "");  // closed without a word
  EXPECT_TRUE(used.ends());
}

// A client that closes while it waits: within one event, and only once.
TEST_F(HttpAttack, ClientGoesAwayBeforeTheAnswer) {
  for (const bool reset : {false, true}) {
    RawClient client(server_.port());
    client.send(kWait);
    const auto reply = server_.next_reply();
    std::atomic<int> calls = 0;
    reply->on_close([&] { ++calls; });
    EXPECT_EQ(server_.server.open_replies(), 1);
    reset ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return calls == 1; }));
    EXPECT_TRUE(reply->closed());
    reply->send({.body = "too late"});
    EXPECT_TRUE(eventually([&] { return server_.server.connections() == 0; }));
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(HttpAttack, ClientGoesAwayInTheMiddleOfAStream) {
  for (const bool reset : {false, true}) {
    RawClient client(server_.port());
    client.send(kWait);
    const auto reply = server_.next_reply();
    std::atomic<int> calls = 0;
    reply->on_close([&] { ++calls; });
    reply->begin_stream({.content_type = "text/event-stream"});
    reply->write("data: 1\n\n");
    ASSERT_TRUE(client.read_until("data: 1"));
    reset ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return calls == 1; }));
    for (int i = 0; i < 10; ++i) reply->write("data: 2\n\n");
    reply->end();
    EXPECT_TRUE(eventually([&] { return server_.server.connections() == 0; }));
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(HttpAttack, HalfClosedClients) {
  RawClient client(server_.port());  // gets what is answered at once, pipelined requests too
  client.send(kWho + kWho);
  client.shut_down_sending();
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(client.ends());

  RawClient partial(server_.port());
  partial.send(kWho + "GET /who HT");
  partial.shut_down_sending();
  EXPECT_EQ(partial.read_answer().status, 200);
  EXPECT_TRUE(partial.ends());

  RawClient middle(server_.port());
  middle.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc");
  middle.shut_down_sending();
  EXPECT_EQ(middle.read_answer().status, 400);

  RawClient waiting(server_.port());  // counts as gone
  waiting.send(kWait);
  const auto reply = server_.next_reply();
  waiting.shut_down_sending();
  EXPECT_TRUE(eventually([&] { return reply->closed(); }));
  EXPECT_TRUE(waiting.ends());
}

// The answer is complete, but larger than what the system buffers.
TEST_F(HttpAttack, HalfClosedAfterALargeAnswer) {
  RawClient client(server_.port(), 4096);
  client.send(kWait);
  const auto reply = server_.next_reply();
  reply->send({.body = std::string(8 << 20, 'x')});
  client.shut_down_sending();
  std::this_thread::sleep_for(milliseconds(50));
  const ClientAnswer answer = client.read_answer();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body.size(), size_t{8} << 20);
}

TEST_F(HttpAttack, StreamThatNobodyReads) {
  RawClient client(server_.port(), 4096);
  client.send(kWait);
  const auto reply = server_.next_reply();
  std::atomic<int> calls = 0;
  reply->on_close([&] { ++calls; });
  reply->begin_stream({.content_type = "text/event-stream"});
  const std::string piece(100 << 10, 'x');
  int pieces = 0;
  for (; pieces < 1000 && !reply->closed(); ++pieces) {
    reply->write(piece);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_LT(pieces, 200);  // 4 MiB of ours and the system's buffers
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
}

TEST_F(HttpAttack, AnswerThatNobodyReads) {
  RawClient client(server_.port(), 4096);
  client.send(kWait);
  server_.next_reply()->send({.body = std::string(16 << 20, 'x')});
  EXPECT_EQ(server_.server.open_replies(), 1);
  EXPECT_TRUE(eventually([&] { return server_.server.open_replies() == 0; }));  // write_timeout
}

TEST_F(HttpAttack, RequestsSentAheadOfAReplyAreHeldBack) {
  RawClient client(server_.port());
  client.send(kWait);
  const auto reply = server_.next_reply();
  std::atomic<bool> sent = false;
  std::thread sender([&] {
    client.send(std::string(32 << 20, '\n'));
    sent = true;
  });
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_FALSE(sent);
  reply->send({.body = "ok"});
  EXPECT_EQ(client.read_answer().body, "ok");
  EXPECT_EQ(client.read_answer().status, 400);
  sender.join();
}

}  // namespace
}  // namespace orthrus
