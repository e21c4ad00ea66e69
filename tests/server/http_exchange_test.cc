#include "server/http_exchange.h"

#include <gtest/gtest.h>

#include <memory>

#include "orthrus/error.h"
#include "server/http_reply.h"
#include "server/http_router.h"

namespace orthrus {
namespace {

struct Mailbox {
  int woken = 0;
  std::shared_ptr<HttpExchange> exchange = std::make_shared<HttpExchange>([this] { ++woken; }, 10);
  std::shared_ptr<HttpReply> reply = std::make_shared<HttpReply>(exchange);
};

TEST(HttpReply, WritesCoalesce) {
  Mailbox box;
  box.reply->begin_stream({.content_type = "text/event-stream"});
  box.reply->write("ab");
  box.reply->write("cd");
  EXPECT_EQ(box.woken, 1);
  HttpExchange::Output output = box.exchange->take();
  ASSERT_TRUE(output.head);
  EXPECT_EQ(output.head->headers[0].first, "cache-control");
  EXPECT_TRUE(output.streamed);
  EXPECT_EQ(output.bytes, "abcd");
  EXPECT_FALSE(output.ended);
  box.reply->write("e");
  box.reply->end();
  EXPECT_EQ(box.woken, 2);
  output = box.exchange->take();
  EXPECT_FALSE(output.head);
  EXPECT_TRUE(output.streamed);
  EXPECT_EQ(output.bytes, "e");
  EXPECT_TRUE(output.ended);
}

TEST(HttpReply, WrongOrderIsAnError) {
  Mailbox box;
  EXPECT_THROW(box.reply->write("a"), Error);
  EXPECT_THROW(box.reply->end(), Error);
  box.reply->send({});
  EXPECT_THROW(box.reply->send({}), Error);
  EXPECT_THROW(box.reply->begin_stream({}), Error);
  EXPECT_THROW(box.reply->write("a"), Error);
}

TEST(HttpReply, DroppedWithoutAnAnswer) {
  Mailbox box;
  const std::shared_ptr<HttpReply> other = box.reply;
  box.reply.reset();
  EXPECT_EQ(box.woken, 0);
  Mailbox last;
  last.reply.reset();
  const HttpExchange::Output output = last.exchange->take();
  ASSERT_TRUE(output.head);
  EXPECT_EQ(output.head->status, 500);
  EXPECT_TRUE(output.ended);
  other->send({});
}

TEST(HttpReply, DroppedInTheMiddle) {
  Mailbox box;
  box.reply->begin_stream({});
  box.exchange->take();
  box.reply.reset();
  EXPECT_EQ(box.woken, 2);
  const HttpExchange::Output output = box.exchange->take();
  EXPECT_TRUE(output.ended);
  EXPECT_TRUE(output.cut);
}

TEST(HttpReply, OnCloseIsCalledOnce) {
  Mailbox box;
  int calls = 0;
  box.reply->on_close([&] { ++calls; });
  EXPECT_FALSE(box.reply->closed());
  box.exchange->close();
  box.exchange->close();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(box.reply->closed());
  box.reply->on_close([&] { ++calls; });  // at once
  EXPECT_EQ(calls, 2);
  const int woken = box.woken;
  box.reply->begin_stream({});
  box.reply->write("more than the ten bytes that may wait");
  box.reply->end();
  box.reply.reset();
  EXPECT_EQ(box.woken, woken);
}

TEST(HttpReply, NoOnCloseAfterTheEnd) {
  Mailbox box;
  const auto held = std::make_shared<int>(0);
  box.reply->on_close([held] { ++*held; });
  box.reply->send({});
  EXPECT_EQ(held.use_count(), 1);  // nothing is kept alive by it
  box.exchange->close();
  box.reply->on_close([held] { ++*held; });
  EXPECT_EQ(*held, 0);
}

TEST(HttpReply, UnreadBytesAreBounded) {
  Mailbox box;
  box.reply->begin_stream({});
  box.reply->write("0123456789");
  EXPECT_EQ(box.exchange->take().bytes.size(), 10u);
  box.exchange->sent(10);
  box.reply->write("0123456789");
  EXPECT_FALSE(box.exchange->given_up());
  const int woken = box.woken;
  box.reply->write("x");  // ten are on their way still
  EXPECT_TRUE(box.exchange->given_up());
  EXPECT_EQ(box.woken, woken + 1);
}

HttpAnswer route(const HttpRouter& router, const char* method, const char* path) {
  Mailbox box;
  HttpRequest request;
  request.method = method;
  request.path = path;
  router(std::move(request), std::move(box.reply));
  const HttpExchange::Output output = box.exchange->take();
  EXPECT_TRUE(output.head);
  return output.head.value_or(HttpAnswer());
}

TEST(HttpRouter, FindsMethodAndPath) {
  HttpRouter router;
  const auto answer = [](const char* text) {
    return [text](HttpRequest, std::shared_ptr<HttpReply> reply) { reply->send({.body = text}); };
  };
  router.add("GET", "/a", answer("get a"));
  router.add("POST", "/a", answer("post a"));
  router.add("POST", "/b", answer("post b"));
  EXPECT_EQ(route(router, "GET", "/a").body, "get a");
  EXPECT_EQ(route(router, "HEAD", "/a").body, "get a");
  EXPECT_EQ(route(router, "POST", "/a").body, "post a");
  EXPECT_EQ(route(router, "POST", "/c").status, 404);
  EXPECT_EQ(route(router, "POST", "/a/").status, 404);
  EXPECT_EQ(route(router, "OPTIONS", "*").status, 204);
  const HttpAnswer wrong = route(router, "GET", "/b");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers, (HttpHeaders{{"allow", "POST, OPTIONS"}}));
  EXPECT_EQ(route(router, "HEAD", "/b").status, 405);
  const HttpAnswer options = route(router, "OPTIONS", "/a");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers, (HttpHeaders{{"allow", "GET, HEAD, POST, OPTIONS"}}));
  EXPECT_THROW(router.add("GET", "/a", answer("again")), Error);
  router.add("GET", "/names/*", answer("a name"));
  router.add("GET", "/names/own", answer("own"));
  EXPECT_EQ(route(router, "GET", "/names/one/two").body, "a name");
  EXPECT_EQ(route(router, "GET", "/names/own").body, "own");
  EXPECT_EQ(route(router, "POST", "/names/x").status, 405);
  EXPECT_EQ(route(router, "GET", "/names").status, 404);
}

}  // namespace
}  // namespace orthrus
