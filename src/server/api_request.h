#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orthrus/options.h"

namespace orthrus {

/// What reading a request needs to know of the server.
struct ApiContext {
  std::vector<std::string> models;  ///< names that a request may use; the first one is in answers
  GenerateOptions defaults;         ///< what a request does not say
  uint64_t seed = 0;                ///< for a request without one: drawn by the caller
  int64_t vocab_size = 0;           ///< token ids are below
  nlohmann::ordered_json template_kwargs = nlohmann::ordered_json::object();  ///< by default
  bool thinks = false;  ///< the model's template or vocabulary knows <think> and </think>
};

/// What requests for chats and for completions have in common.
struct GenerationRequest {
  GenerateOptions options;  ///< of choice 0
  int64_t n = 1;            ///< answers to each prompt
  bool stream = false;
  bool include_usage = false;  ///< a last chunk of a stream with the usage
  int priority = 0;            ///< EngineRequest::priority
  std::string form;            ///< the parameter that decides the answer's form; "": none

  bool wants_logprobs() const { return options.logprobs >= 0; }
  /// Options of one of the n answers: the same noise for the same choice, whatever n.
  GenerateOptions choice_options(int64_t choice) const;
};

/// A body of POST /v1/chat/completions.
struct ChatRequest : GenerationRequest {
  nlohmann::ordered_json context;  ///< for ChatTemplate::render
  bool continue_final = false;     ///< the answer continues the last message
  bool thinks = false;             ///< ApiContext::thinks
  bool tools = false;              ///< look for tool calls in the answer
  bool calls_only = false;         ///< the answer is nothing but calls
};

/// A body of POST /v1/completions.
struct CompletionRequest : GenerationRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;
  std::vector<Prompt> prompts;
  bool echo = false;  ///< answers begin with their prompt
};

/// A body of POST /tokenize, in llama-server's form ("content") or vLLM's ("prompt", "messages").
struct TokenizeRequest {
  std::string text;                ///< unless it is a chat
  nlohmann::ordered_json context;  ///< of a chat, for ChatTemplate::render; else null
  bool add_special = false;
  bool with_pieces = false;  ///< llama-server: ids and texts
  bool with_texts = false;   ///< vLLM: texts in a list of their own
};

/// All of these: ApiError for what is not as docs/serving.md says, naming the parameter.
ChatRequest parse_chat_request(std::string_view body, const ApiContext& context);
CompletionRequest parse_completion_request(std::string_view body, const ApiContext& context);
TokenizeRequest parse_tokenize_request(std::string_view body, const ApiContext& context);
std::vector<int32_t> parse_detokenize_request(std::string_view body, const ApiContext& context);

}  // namespace orthrus
