#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "orthrus/error.h"
#include "server/http_answer.h"

namespace orthrus {

/// What a request is answered with where it cannot be served: a status of HTTP and the fields of
/// OpenAI's error object.
struct ApiError : std::runtime_error {
  ApiError(int http_status, std::string kind, const std::string& message,
           std::string parameter = {}, std::string error_code = {})
      : std::runtime_error(message),
        status(http_status),
        type(std::move(kind)),
        param(std::move(parameter)),
        code(std::move(error_code)) {}

  int status;
  std::string type;   ///< "invalid_request_error", "server_error", ...
  std::string param;  ///< the parameter that is wrong, as "messages[0].content"; may be empty
  std::string code;   ///< for programs; may be empty
};

/// 400: the request itself is wrong.
ApiError bad_request(const std::string& message, const std::string& param = {},
                     const std::string& code = {});

/// How an error of the engine is told: the requester's fault is a 400 with its message, an internal
/// one a 500 without.
ApiError api_error(const Error& error, const std::string& param = {});

/// error_body() of http_error.h.
std::string error_body(const ApiError& error);

/// The whole answer; with Retry-After where trying again may help.
HttpAnswer error_answer(const ApiError& error);

/// 404: a model that is not one of those served.
ApiError model_not_found(std::string_view model, const std::vector<std::string>& served);

/// Errors of the server itself, in one place so that they look alike.
ApiError queue_full();  ///< 429
/// 400: more answers in one request than are ever taken at once.
ApiError too_many_answers(int64_t found, int64_t most);
ApiError not_ready(const std::string& message);  ///< 503: loading or draining
ApiError going_down();                           ///< 503
ApiError timed_out();                            ///< 504: --request-timeout
/// /v1/embeddings and /v1/responses. 404: clients try again after a 5xx.
ApiError unsupported_endpoint(const std::string& path);

}  // namespace orthrus
