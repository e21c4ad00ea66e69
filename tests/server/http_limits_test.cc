#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <list>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "http_client.h"
#include "http_test_server.h"

namespace orthrus {
namespace {

const std::string kWho = "GET /who HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kWait = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(HttpLimits, TooManyConnections) {
  HttpOptions options = test_options();
  options.max_connections = 3;
  TestServer server(options);
  std::list<RawClient> clients;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(clients.emplace_back(server.port()).ask(kWho).status, 200);
  RawClient more(server.port());
  const ClientAnswer answer = more.ask(kWho);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_TRUE(more.ends());
  more.close();
  EXPECT_EQ(clients.front().ask(kWho).status, 200);  // the others are not disturbed
  clients.pop_front();
  EXPECT_TRUE(eventually([&] { return server.server.connections() == 2; }));
  EXPECT_EQ(RawClient(server.port()).ask(kWho).status, 200);
}

// Even a flood of connections that are refused and never read has a bound.
TEST(HttpLimits, FloodOfConnections) {
  HttpOptions options = test_options();
  options.max_connections = 1;
  TestServer server(options);
  std::list<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
  EXPECT_TRUE(clients.back().ends());
  EXPECT_LE(server.server.connections(), 65);
  EXPECT_EQ(clients.front().ask(kWho).status, 200);
}

TEST(HttpLimits, IdleConnectionsCostNothing) {
  TestServer server;
  std::list<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
  EXPECT_TRUE(eventually([&] { return server.server.connections() == 200; }));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.05);
  for (RawClient& client : clients) EXPECT_EQ(client.ask(kWho).status, 200);
}

TEST(HttpLimits, BodiesOfAllTogether) {
  HttpOptions options = test_options();
  options.max_total_body_bytes = 3 << 20;
  TestServer server(options);
  const std::string half(1 << 20, 'x');
  const std::string post = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2097152\r\n\r\n";
  RawClient first(server.port()), second(server.port());
  first.send(post + half);
  second.send(post + half);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  RawClient third(server.port());
  third.send(post + half + half.substr(1));
  const ClientAnswer refused = third.read_answer();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  first.send(half);
  EXPECT_EQ(first.read_answer().body.size(), half.size() * 2);
  second.close();  // what it sent does not count any more
  EXPECT_TRUE(eventually([&] { return server.server.connections() <= 2; }));
  RawClient fourth(server.port());
  fourth.send(post + half + half.substr(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(fourth.ask("x").status, 200);
}

// A request counts for as long as it lives, also after its answer and after the server.
TEST(HttpLimits, BodiesOfRequestsThatLive) {
  std::mutex mutex;
  std::vector<HttpRequest> requests;
  HttpOptions options = test_options();
  options.max_total_body_bytes = 3000;
  auto server = std::make_unique<HttpServer>(options, [&](HttpRequest request, const auto& reply) {
    const std::lock_guard lock(mutex);
    requests.push_back(std::move(request));
    reply->send({});
  });
  const auto post = [](size_t size) {
    return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
           std::string(size, 'x');
  };
  RawClient client(server->port());
  EXPECT_EQ(client.ask(post(2000)).status, 200);
  const ClientAnswer refused = client.ask(post(1001));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(client.ask(post(1000)).status, 200);  // the connection goes on
  EXPECT_EQ(client.ask(post(1)).status, 503);
  EXPECT_EQ(client.ask(kWho).status, 200);
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(requests.at(1).body.size(), 1000u);
    requests.erase(requests.begin());
  }
  EXPECT_EQ(client.ask(post(2000)).status, 200);
  server.reset();
  requests.clear();
}

#if !defined(ORTHRUS_SANITIZED)  // the sanitizers themselves need file descriptors
// The error would come again at once for as long as a client waits.
TEST(HttpLimits, NoFileDescriptorsLeft) {
  spdlog::set_level(spdlog::level::off);
  TestServer server;
  RawClient first(server.port());
  EXPECT_EQ(first.ask(kWho).status, 200);
  rlimit before;
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 256;
  ::setrlimit(RLIMIT_NOFILE, &low);
  std::list<int> fillers;
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) fillers.push_back(fd);
  ::close(fillers.back());
  fillers.pop_back();
  RawClient waiting(server.port());  // connects: the system takes it into its queue
  waiting.send(kWho);
  const double cpu = cpu_seconds();
  EXPECT_EQ(waiting.read_some(0.5), "");
  EXPECT_LT(cpu_seconds() - cpu, 0.1);
  EXPECT_EQ(first.ask(kWho).status, 200);
  for (const int fd : fillers) ::close(fd);
  EXPECT_EQ(waiting.read_answer().status, 200);
  ::setrlimit(RLIMIT_NOFILE, &before);
  spdlog::set_level(spdlog::level::info);
}
#endif

TEST(HttpLimits, StopWhileStreamsRun) {
  auto server = std::make_unique<TestServer>();
  std::list<RawClient> clients;
  std::vector<std::shared_ptr<HttpReply>> replies;
  std::atomic<int> closed = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(server->port()).send(kWait);
    replies.push_back(server->next_reply());
    replies.back()->on_close([&] { ++closed; });
    if (i % 2) replies.back()->begin_stream({});
  }
  RawClient idle(server->port());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) {
      for (int i = 1; i < 8; i += 2) replies[static_cast<size_t>(i)]->write("token ");
      std::this_thread::yield();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  server->server.stop();
  EXPECT_EQ(closed, 8);
  EXPECT_EQ(server->server.connections(), 0);
  EXPECT_EQ(server->server.open_replies(), 0);
  server->server.stop();  // again does nothing
  done = true;
  writer.join();
  EXPECT_TRUE(idle.ends());
  for (RawClient& client : clients) EXPECT_TRUE(client.ends());
  server.reset();
  replies[1]->end();  // a reply may outlive the server
  replies[0]->send({});
}

TEST(HttpLimits, StopAcceptingFinishesWhatRuns) {
  TestServer server;
  RawClient client(server.port());
  client.send(kWait);
  const auto reply = server.next_reply();
  server.server.stop_accepting();
  EXPECT_TRUE(eventually([&] {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int refused = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    ::close(fd);
    return refused != 0;
  }));
  reply->send({.body = "last"});
  const ClientAnswer answer = client.read_answer();
  EXPECT_EQ(answer.body, "last");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.ends());
}

// For the thread sanitizer: replies from other threads, several I/O threads, clients that leave.
TEST(HttpLimits, ManyThreads) {
  HttpOptions options = test_options();
  options.io_threads = 3;
  TestServer server(options);
  std::atomic<bool> done = false;
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (!done) {
        const auto reply = server.next_reply(std::chrono::milliseconds(20));
        if (!reply) continue;
        reply->on_close([] {});
        reply->begin_stream({.content_type = "text/event-stream"});
        for (int n = 0; n < 20; ++n) reply->write("data: token\n\n");
        reply->end();
      }
    });
  }
  std::vector<std::thread> clients;
  std::atomic<int> whole = 0;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      for (int n = 0; n < 30; ++n) {
        RawClient client(server.port());
        client.send(kWait);
        if ((n + i) % 3 == 0) continue;  // leaves
        const ClientAnswer answer = client.read_answer();
        if (answer.whole && answer.body.size() == 20 * 13) ++whole;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole, 6 * 20);
  EXPECT_TRUE(eventually([&] { return server.server.open_replies() == 0; }));
  done = true;
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace orthrus
