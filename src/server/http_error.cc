#include "server/http_error.h"

#include <nlohmann/json.hpp>

namespace orthrus {

std::string_view error_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

std::string error_body(std::string_view message, std::string_view type, std::string_view code,
                       std::string_view param) {
  const auto or_null = [](std::string_view text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json body = {
      {"error",
       {{"message", message}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}}}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpAnswer error_answer(int status, std::string_view message, std::string_view code,
                        std::string_view param) {
  return {.status = status, .body = error_body(message, error_type(status), code, param)};
}

}  // namespace orthrus
