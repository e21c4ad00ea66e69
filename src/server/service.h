#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/generator.h"
#include "server/api_info.h"
#include "server/api_request.h"
#include "server/http_options.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/request_readers.h"

namespace orthrus {

class HttpRouter;

struct ServiceOptions {
  HttpOptions http;
  std::vector<std::string> names;  ///< of the model in requests; the first one is in answers
  std::string version;
  std::string template_kwargs;              ///< of requests that do not set them, JSON; "": none
  int64_t max_queue = 128;                  ///< answers beside a full batch; more: 429
  std::chrono::seconds request_timeout{0};  ///< to the end of an answer; 0: none
  std::chrono::seconds drain_timeout{30};   ///< that running answers have at the end
  bool page = true;                         ///< the chat page at "/"
};

/// The server of `orthrus serve`: the OpenAI API and what belongs to it, over one model. Answers
/// /health from its construction on, and requests for the model once there is one.
class Service {
 public:
  /// Listens when it returns. Errors as HttpServer has them.
  explicit Service(ServiceOptions options);
  /// Ends what is under way.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  uint16_t port() const { return http_->port(); }

  /// Serves this model from now on; once. The generator must outlive the service and is used by
  /// nobody else. `defaults`: what requests do not say; without `seed` each request's is drawn.
  void serve(Generator& generator, const EngineOptions& engine_options, GenerateOptions defaults,
             std::optional<uint64_t> seed);

  /// Requests get 503 from now on; those under way have drain_timeout, or until `hurry`. Those that
  /// are left get an error. Returns whether all of them have been answered.
  bool drain(const std::stop_token& hurry);

 private:
  struct Served;

  HttpRouter routes();
  HttpHandler on_reader(void (Service::*read)(HttpRequest&, const std::shared_ptr<HttpReply>&));

  void chat(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void completion(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void answer(HttpRequest& request, const std::shared_ptr<HttpReply>& reply, bool chat);
  void models(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void tokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void detokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  void end_engine();
  HttpAnswer health() const;
  HttpAnswer metrics();
  /// ApiError 503 while there is no model, or none any more.
  Served& served() const;

  ServiceOptions options_;
  Metrics metrics_;
  std::atomic<ServerState> state_ = ServerState::kLoading;
  std::unique_ptr<Served> served_;       // set before state_ is kReady
  RequestReaders readers_{2};            // a long request holds up its like at most
  boost::asio::thread_pool writers_{1};  // of answers
  std::unique_ptr<HttpServer> http_;
};

}  // namespace orthrus
