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
    boost::asio::post(pool_,
                      [reader, request = std::move(request), reply = std::move(reply)]() mutable {
                        if (!reply->closed()) read(reader, request, reply);
                      });
  };
}

}  // namespace orthrus
