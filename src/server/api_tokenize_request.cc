#include <fmt/format.h>

#include "server/api_messages.h"
#include "server/api_parameters.h"
#include "server/api_tools.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxText = SIZE_MAX;  // the body has a limit

void read_chat(ObjectReader& body, const ApiContext& context, TokenizeRequest& request) {
  request.context = read_template_context(body, true, context.template_kwargs);
  const ToolPlan plan = read_tools(body);
  if (!plan.functions.empty()) request.context["tools"] = plan.tools;
}

}  // namespace

TokenizeRequest parse_tokenize_request(std::string_view text, const ApiContext& context) {
  const Json json = parse_request_json(text);
  ObjectReader body(json, "");
  TokenizeRequest request;
  read_model(body, context);
  const int forms = body.has("content") + body.has("prompt") + body.has("messages");
  if (forms != 1) {
    throw bad_request(fmt::format("Expected one of content, prompt and messages, found {}.",
                                  forms == 0 ? "none" : "several"),
                      "content", "missing_required_parameter");
  }
  if (body.has("messages")) {
    read_chat(body, context, request);
  } else {
    request.text = body.string(body.has("content") ? "content" : "prompt", kMaxText);
  }
  // Each form has the name and the default of where it comes from.
  const bool usual = body.boolean("add_special", body.has("prompt"));
  request.add_special = body.boolean("add_special_tokens", usual);
  request.with_pieces = body.boolean("with_pieces", false);
  request.with_texts = body.boolean("return_token_strs", false);
  if (!body.boolean("parse_special", true)) {
    body.refuse("parse_special", "special tokens in a text become their ids");
  }
  body.finish();
  return request;
}

std::vector<int32_t> parse_detokenize_request(std::string_view text, const ApiContext& context) {
  const Json json = parse_request_json(text);
  ObjectReader body(json, "");
  read_model(body, context);
  const Json* tokens = body.array("tokens", kMaxJsonValues);
  if (!tokens) body.fail("tokens", "a list of token ids");
  body.finish();
  return read_token_ids(*tokens, "tokens", context);
}

}  // namespace orthrus
