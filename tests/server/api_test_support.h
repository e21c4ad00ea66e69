#pragma once

#include <optional>
#include <string>

#include "server/api_error.h"
#include "server/api_request.h"
#include "text/tokenizer.h"

namespace orthrus {

/// A byte-level vocabulary of 1024 tokens.
inline const Tokenizer& tiny_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(ORTHRUS_TEST_DATA "/tiny/checkpoint");
  return tokenizer;
}

inline ApiContext test_context() {
  ApiContext context;
  context.models = {"tiny", "alias"};
  context.defaults.sampling.temperature = 0.6;
  context.defaults.sampling.top_k = 20;
  context.seed = 77;
  context.vocab_size = 1024;
  context.thinks = true;
  return context;
}

/// What `call` throws as "STATUS PARAM CODE: MESSAGE", or "no error".
template <typename Call>
std::string api_error_of(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return std::to_string(error.status) + " " + (error.param.empty() ? "-" : error.param) + " " +
           (error.code.empty() ? "-" : error.code) + ": " + error.what();
  }
  return "no error";
}

/// A chat body with one message and these further members.
inline std::string chat_body(const std::string& members = "") {
  return R"({"messages": [{"role": "user", "content": "Hi"}])" +
         (members.empty() ? "" : ", " + members) + "}";
}

inline std::string completion_body(const std::string& members = "") {
  return R"({"prompt": "Hi")" + (members.empty() ? "" : ", " + members) + "}";
}

inline ChatRequest chat(const std::string& members = "") {
  return parse_chat_request(chat_body(members), test_context());
}

inline CompletionRequest completion(const std::string& members = "") {
  return parse_completion_request(completion_body(members), test_context());
}

}  // namespace orthrus
