#include "server/http_router.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "formats/printable.h"
#include "server/http_error.h"

namespace orthrus {

void HttpRouter::add(std::string method, std::string path, HttpHandler handler) {
  ORTHRUS_CHECK(!path.empty());
  ORTHRUS_CHECK(paths_[std::move(path)].emplace(std::move(method), std::move(handler)).second);
}

const HttpRouter::Methods* HttpRouter::methods_at(std::string_view path) const {
  if (const auto exact = paths_.find(path); exact != paths_.end()) return &exact->second;
  for (const auto& [pattern, methods] : paths_) {
    const std::string_view begin(pattern.data(), pattern.size() - 1);
    if (pattern.back() == '*' && path.starts_with(begin)) return &methods;
  }
  return nullptr;
}

void HttpRouter::operator()(HttpRequest request, std::shared_ptr<HttpReply> reply) const {
  const Methods* found = methods_at(request.path);
  if (!found) {
    const bool whole_server = request.method == "OPTIONS" && request.path == "*";
    return reply->send(
        whole_server
            ? HttpAnswer{.status = 204}
            : error_answer(404, fmt::format("there is no {} here", printable(request.path)),
                           "not_found"));
  }
  const Methods& methods = *found;
  auto method = methods.find(request.method);
  if (method == methods.end() && request.method == "HEAD") method = methods.find("GET");
  if (method != methods.end()) return method->second(std::move(request), std::move(reply));

  std::string allowed;
  for (const auto& [name, handler] : methods) allowed += name + (name == "GET" ? ", HEAD, " : ", ");
  allowed += "OPTIONS";
  HttpAnswer answer{.status = 204};
  if (request.method != "OPTIONS") {
    answer = error_answer(405,
                          fmt::format("{} takes {}, not {}", printable(request.path), allowed,
                                      printable(request.method)),
                          "method_not_allowed");
  }
  answer.headers.emplace_back("allow", allowed);
  reply->send(std::move(answer));
}

}  // namespace orthrus
