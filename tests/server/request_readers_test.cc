#include "server/request_readers.h"

#include <gtest/gtest.h>

#include <future>
#include <list>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "http_client.h"
#include "http_test_server.h"
#include "server/api_error.h"
#include "server/http_server.h"

namespace orthrus {
namespace {

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// A server with one reader, which waits at "/wait" until released.
class ReadersTest : public testing::Test {
 protected:
  ~ReadersTest() override {
    release();
    server_.stop();
    readers_.join();
  }

  void release() {
    if (!std::exchange(is_released_, true)) release_.set_value();
  }

  void read(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    {
      const std::lock_guard lock(mutex_);
      read_.push_back(request.path);
    }
    if (request.path == "/wait") released_.wait();
    if (request.path == "/api") throw queue_full();
    if (request.path == "/user") fail("no such thing");
    if (request.path == "/internal") throw std::runtime_error("secret");
    reply->send({.body = std::to_string(request.body.size())});
  }

  std::vector<std::string> paths() {
    const std::lock_guard lock(mutex_);
    return read_;
  }

  static HttpOptions options() {
    HttpOptions options = test_options();
    options.max_total_body_bytes = 100'000;
    options.forwarded_allow_ips = {"*"};
    return options;
  }

  std::mutex mutex_;
  std::vector<std::string> read_;
  std::promise<void> release_;
  bool is_released_ = false;
  std::shared_future<void> released_ = release_.get_future().share();
  RequestReaders readers_{1};
  HttpServer server_{options(), readers_.handler([this](auto& request, const auto& reply) {
                       read(request, reply);
                     })};
};

TEST_F(ReadersTest, WhatIsThrownBecomesTheAnswer) {
  spdlog::set_level(spdlog::level::off);
  RawClient client(server_.port());
  EXPECT_EQ(client.ask(post("/", "abc")).body, "3");
  const ClientAnswer full = client.ask(post("/api", ""));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.headers.at("retry-after"), "1");
  EXPECT_EQ(client.ask(post("/user", "")).status, 400);
  const ClientAnswer internal = client.ask(post("/internal", ""));
  EXPECT_EQ(internal.status, 500);
  EXPECT_EQ(internal.body.find("secret"), std::string::npos);
  spdlog::set_level(spdlog::level::info);
}

TEST_F(ReadersTest, ClientsThatAreGoneAreSkipped) {
  RawClient first(server_.port());
  first.send(post("/wait", ""));
  EXPECT_TRUE(eventually([&] { return paths().size() == 1; }));
  {
    RawClient leaves(server_.port());
    leaves.send(post("/gone", "x"));
    EXPECT_TRUE(eventually([&] { return server_.open_replies() == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return server_.open_replies() == 1; }));
  RawClient stays(server_.port());
  stays.send(post("/stays", "x"));
  EXPECT_TRUE(eventually([&] { return server_.open_replies() == 2; }));
  release();
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(stays.read_answer().status, 200);
  EXPECT_EQ(paths(), (std::vector<std::string>{"/wait", "/stays"}));
}

std::string post_of(const std::string& client, const std::string& path) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client +
         "\r\nContent-Length: 0\r\n\r\n";
}

TEST_F(ReadersTest, ClientsTakeTurns) {
  std::list<RawClient> clients;
  const auto send = [&](const std::string& client, const std::string& path) {
    clients.emplace_back(server_.port()).send(post_of(client, path));
    const auto open = static_cast<int64_t>(clients.size());
    ASSERT_TRUE(eventually([&] { return server_.open_replies() == open; }));
  };
  send("10.0.0.1", "/wait");
  EXPECT_TRUE(eventually([&] { return paths().size() == 1; }));
  for (const char* path : {"/a1", "/a2", "/a3"}) send("10.0.0.1", path);
  for (const char* path : {"/b1", "/b2"}) send("10.0.0.2", path);
  send("10.0.0.3", "/c1");
  release();
  for (RawClient& client : clients) EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(paths(), (std::vector<std::string>{"/wait", "/a1", "/b1", "/c1", "/a2", "/b2", "/a3"}));
}

TEST_F(ReadersTest, WhatWaitsIsRefusedAtTheEnd) {
  RawClient first(server_.port());
  first.send(post("/wait", ""));
  EXPECT_TRUE(eventually([&] { return paths().size() == 1; }));
  std::list<RawClient> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back(server_.port()).send(post("/late", "x"));
    EXPECT_TRUE(eventually([&] { return server_.open_replies() == i + 2; }));
  }
  readers_.refuse_waiting(going_down());
  for (RawClient& client : waiting) EXPECT_EQ(client.read_answer().status, 503);
  release();
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(paths(), std::vector<std::string>{"/wait"});
}

// However many connections there are: what waits for a reader is within max_total_body_bytes.
TEST_F(ReadersTest, WhatWaitsHasABound) {
  RawClient first(server_.port());
  first.send(post("/wait", ""));
  EXPECT_TRUE(eventually([&] { return paths().size() == 1; }));
  const std::string body(30'000, 'x');
  std::list<RawClient> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back(server_.port()).send(post("/", body));
    EXPECT_TRUE(eventually([&] { return server_.open_replies() == i + 2; }));
  }
  RawClient more(server_.port());
  const ClientAnswer refused = more.ask(post("/", body));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  release();
  for (RawClient& client : waiting) EXPECT_EQ(client.read_answer().body, "30000");
  EXPECT_EQ(RawClient(server_.port()).ask(post("/", body)).status, 200);
}

}  // namespace
}  // namespace orthrus
