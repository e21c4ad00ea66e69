#include "server/request_readers.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/api_error.h"

namespace orthrus {
namespace {

void read(const RequestReaders::Reader& reader, HttpRequest& request,
          const std::shared_ptr<HttpReply>& reply) {
  try {
    reader(request, reply);
  } catch (const ApiError& error) {
    reply->send(error_answer(error));
  } catch (const Error& error) {
    spdlog::error("{}: {}", request.id, error.what());
    reply->send(error_answer(api_error(error)));
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", request.id, error.what());
    reply->send(error_answer(api_error(Error(ErrorKind::kInternal, error.what()))));
  }
}

}  // namespace

HttpHandler RequestReaders::handler(Reader reader) {
  return [this, reader = std::move(reader)](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    put({reader, std::move(request), std::move(reply)});
    boost::asio::post(pool_, [this] { read_next(); });
  };
}

void RequestReaders::put(Task task) {
  const std::lock_guard lock(mutex_);
  const std::string client = task.request.client;
  std::deque<Task>& own = waiting_[client];
  if (own.empty()) turns_.push_back(client);
  own.push_back(std::move(task));
}

std::optional<RequestReaders::Task> RequestReaders::take() {
  const std::lock_guard lock(mutex_);
  if (turns_.empty()) return std::nullopt;  // refused
  std::string client = std::move(turns_.front());
  turns_.pop_front();
  const auto found = waiting_.find(client);
  Task task = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) {
    waiting_.erase(found);
  } else {
    turns_.push_back(std::move(client));
  }
  return task;
}

void RequestReaders::read_next() {
  std::optional<Task> task = take();
  if (task && !task->reply->closed()) read(task->reader, task->request, task->reply);
}

void RequestReaders::refuse_waiting(const ApiError& error) {
  while (const std::optional<Task> task = take()) task->reply->send(error_answer(error));
}

}  // namespace orthrus
