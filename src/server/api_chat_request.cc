#include <fmt/format.h>

#include "server/api_messages.h"
#include "server/api_parameters.h"
#include "server/api_prompt.h"
#include "server/api_tools.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

void read_chat(ObjectReader& body, const ApiContext& context, ChatRequest& request) {
  request.continue_final = body.boolean("continue_final_message", false);
  // A message that goes on has no new header behind it.
  request.context = read_template_context(body, !request.continue_final, context.template_kwargs);
  if (!request.continue_final) return;
  const Json& last = request.context["messages"].back();
  if (last["role"] != "assistant" || last["content"] == "" || last.contains("tool_calls")) {
    throw bad_request("continue_final_message: the last message must be an assistant's text.",
                      "continue_final_message", "invalid_value");
  }
  if (request.context["add_generation_prompt"] == true) {
    throw bad_request("continue_final_message and add_generation_prompt exclude each other.",
                      "add_generation_prompt", "invalid_value");
  }
}

void apply_tools(const ToolPlan& plan, ChatRequest& request) {
  if (plan.choice == ToolPlan::Choice::kNone) return;  // nor does the model hear of any
  GenerateOptions& options = request.options;
  if (!options.grammar.empty() || !options.json_schema.empty()) {
    throw bad_request(
        "tools and response_format (or grammar) cannot both decide the answer's form; "
        "\"tool_choice\": \"none\" leaves the tools out.",
        "tools", "invalid_value");
  }
  request.tools = true;
  request.calls_only = plan.choice == ToolPlan::Choice::kRequired;
  request.context["tools"] = plan.tools;
  if (plan.has_grammar()) {
    options.grammar = tool_call_grammar(plan);
    request.form = "tools";
  }
  if (plan.choice == ToolPlan::Choice::kAuto && !plan.parallel) {
    options.stop.emplace_back(kToolCallEnd);  // the first call ends the answer
  }
}

void refuse_unsupported(ObjectReader& body) {
  body.refuse("functions", "use tools");
  body.refuse("function_call", "use tool_choice");
  body.refuse("audio", "the model writes text only");
  body.refuse("reasoning_effort", "use chat_template_kwargs, as {\"enable_thinking\": false}");
  body.refuse("verbosity", "say it in the messages");
  body.refuse("prediction", "the model drafts by itself");
  body.refuse("web_search_options", "there is no search");
  if (const Json* modalities = body.array("modalities", 2)) {
    if (*modalities != Json::array({"text"})) body.fail("modalities", "[\"text\"]");
  }
}

}  // namespace

ChatRequest parse_chat_request(std::string_view text, const ApiContext& context) {
  const Json json = parse_request_json(text);
  ObjectReader body(json, "");
  ChatRequest request;
  request.thinks = context.thinks;
  read_model(body, context);
  read_chat(body, context, request);
  read_generation(body, context, request);
  const int64_t max_tokens = read_max_tokens(body, "max_completion_tokens", 1);
  if (max_tokens >= 0) request.options.max_new_tokens = max_tokens;
  const bool logprobs = body.boolean("logprobs", false);
  const int64_t top = body.integer("top_logprobs", 0, 20, 0);
  if (body.has("top_logprobs") && !logprobs) {
    throw bad_request("top_logprobs is for \"logprobs\": true only.", "top_logprobs",
                      "invalid_value");
  }
  if (logprobs) request.options.logprobs = top;
  apply_tools(read_tools(body), request);
  check_end(request.options);
  refuse_unsupported(body);
  body.finish();
  return request;
}

}  // namespace orthrus
