#pragma once

#include <string>
#include <string_view>

#include "server/http_answer.h"

namespace orthrus {

/// The kind of an error as OpenAI's API names it: "invalid_request_error", "rate_limit_error",
/// "server_error".
std::string_view error_type(int status);

/// {"error":{"message","type","param","code"}}, the error of OpenAI's API. An empty `code` or
/// `param` is null. Bytes of `message` that are not UTF-8 become U+FFFD.
std::string error_body(std::string_view message, std::string_view type, std::string_view code = "",
                       std::string_view param = "");

/// The answer with that error; its type follows from the status.
HttpAnswer error_answer(int status, std::string_view message, std::string_view code = "",
                        std::string_view param = "");

}  // namespace orthrus
