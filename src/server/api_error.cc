#include "server/api_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/printable.h"
#include "server/http_error.h"

namespace orthrus {
namespace {

constexpr const char* kInvalid = "invalid_request_error";

}  // namespace

ApiError bad_request(const std::string& message, const std::string& param,
                     const std::string& code) {
  return {400, kInvalid, message, param, code};
}

ApiError api_error(const Error& error, const std::string& param) {
  if (error.kind() != ErrorKind::kInternal) return bad_request(error.what(), param);
  return {500,
          "server_error",
          "The server failed on this request; its log says why.",
          {},
          "internal_error"};
}

std::string error_body(const ApiError& error) {
  return error_body(error.what(), error.type, error.code, error.param);
}

HttpAnswer error_answer(const ApiError& error) {
  HttpAnswer answer{.status = error.status, .body = error_body(error)};
  if (error.status == 429 || error.status == 503) answer.headers.emplace_back("retry-after", "1");
  // The openai package asks again after any status from 500 on: the same work, and late again.
  if (error.status == 504) answer.headers.emplace_back("x-should-retry", "false");
  return answer;
}

ApiError model_not_found(std::string_view model, const std::vector<std::string>& served) {
  constexpr size_t kShown = 3;
  std::string names;
  for (size_t i = 0; i < std::min(served.size(), kShown); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", printable(served[i]));
  }
  if (served.size() > kShown) names += fmt::format(" and {} more", served.size() - kShown);
  return {
      404, kInvalid,
      fmt::format("The model \"{}\" is not served here; these are: {}.", printable(model), names),
      "model", "model_not_found"};
}

ApiError queue_full() {
  return {
      429, "rate_limit_error", "Too many requests are waiting; try again later.", {}, "queue_full"};
}

ApiError too_many_answers(int64_t found, int64_t most) {
  return bad_request(
      fmt::format(
          "The request asks for {} answers, expected at most {} (--parallel and --max-queue "
          "of the server together).",
          found, most),
      "n", "too_many_answers");
}

ApiError not_ready(const std::string& message) {
  return {503, "unavailable_error", message, {}, "unavailable"};
}

ApiError going_down() { return not_ready("The server is going down."); }

ApiError timed_out() {
  return {504,
          "server_error",
          "The answer took longer than the server allows (--request-timeout).",
          {},
          "timeout"};
}

ApiError unsupported_endpoint(const std::string& path) {
  return {404,
          kInvalid,
          fmt::format("{} is not supported: this server has /v1/chat/completions and "
                      "/v1/completions.",
                      printable(path)),
          {},
          "unsupported_endpoint"};
}

}  // namespace orthrus
