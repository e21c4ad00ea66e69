#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_reply.h"
#include "server/http_request.h"

namespace orthrus {

/// Is called on an I/O thread and must not block. What it throws becomes a 400 (Error of kInput or
/// kUsage) or a 500.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

/// Finds the handler of a method and a path, which is exact or ends with "*", for anything that is
/// not a path of its own; itself a handler. GET answers HEAD too.
/// 404 for an unknown path, 405 with Allow for a wrong method, 204 with Allow for OPTIONS.
class HttpRouter {
 public:
  void add(std::string method, std::string path, HttpHandler handler);
  void operator()(HttpRequest request, std::shared_ptr<HttpReply> reply) const;

 private:
  using Methods = std::map<std::string, HttpHandler, std::less<>>;
  /// Null where there are none.
  const Methods* methods_at(std::string_view path) const;

  std::map<std::string, Methods, std::less<>> paths_;
};

}  // namespace orthrus
