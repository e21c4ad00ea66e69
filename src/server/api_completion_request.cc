#include <fmt/format.h>

#include "server/api_parameters.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

// OpenAI's and vLLM's; a completion has no natural end.
constexpr int64_t kDefaultMaxTokens = 16;

std::vector<CompletionRequest::Prompt> read_prompts(ObjectReader& body, const ApiContext& context) {
  constexpr const char* kExpected = "a text, a list of texts, token ids, or a list of those";
  const Json* prompt = body.find("prompt");
  if (!prompt) body.fail("prompt", kExpected);
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (!prompt->is_array() || prompt->empty()) body.fail("prompt", kExpected);
  if (prompt->front().is_number()) return {read_token_ids(*prompt, "prompt", context)};
  body.array("prompt", kMaxAnswers);
  std::vector<CompletionRequest::Prompt> prompts;
  for (const Json& element : *prompt) {
    const std::string path = fmt::format("prompt[{}]", prompts.size());
    const bool alike = element.type() == prompt->front().type();
    if (alike && element.is_string()) {
      prompts.emplace_back(element.get<std::string>());
    } else if (alike && element.is_array()) {
      prompts.emplace_back(read_token_ids(element, path, context));
    } else {
      throw bad_request(
          fmt::format("{}: expected {}, found {}.", path,
                      prompt->front().is_array() ? "token ids" : "a text", shown(element)),
          path, "invalid_value");
    }
  }
  return prompts;
}

}  // namespace

CompletionRequest parse_completion_request(std::string_view text, const ApiContext& context) {
  const Json json = parse_request_json(text);
  ObjectReader body(json, "");
  CompletionRequest request;
  read_model(body, context);
  request.prompts = read_prompts(body, context);
  read_generation(body, context, request);
  const int64_t max_tokens = read_max_tokens(body, nullptr, 0);
  if (max_tokens >= 0) {
    request.options.max_new_tokens = max_tokens;
  } else if (request.options.max_new_tokens < 0) {
    request.options.max_new_tokens = kDefaultMaxTokens;
  }
  check_end(request.options);
  request.echo = body.boolean("echo", false);
  request.options.logprobs = body.integer("logprobs", 0, 20, -1);
  request.options.prompt_logprobs = request.echo && request.wants_logprobs();
  if (request.stream && request.options.prompt_logprobs) {
    throw bad_request("echo with logprobs is for answers in one piece, not for streams.", "stream",
                      "unsupported_parameter");
  }
  body.refuse("suffix", "the model writes at the end only");
  if (body.integer("best_of", 1, kMaxChoices, request.n) != request.n) {
    body.fail("best_of", fmt::format("n, which is {}", request.n));
  }
  body.finish();
  if (request.prompts.size() * static_cast<size_t>(request.n) > kMaxAnswers) {
    throw bad_request(fmt::format("{} prompts with {} answers each, expected at most {} answers.",
                                  request.prompts.size(), request.n, kMaxAnswers),
                      "n", "invalid_value");
  }
  return request;
}

}  // namespace orthrus
