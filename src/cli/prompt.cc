#include "cli/prompt.h"

#include "base/error.h"
#include "cli/result_report.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

Json template_request(const PromptFlags& flags) {
  Json request = {{"messages", Json::array()}};
  if (!flags.system.empty()) add_message(request, "system", flags.system);
  if (!flags.template_kwargs.empty()) request["kwargs"] = Json::parse(flags.template_kwargs);
  return request;
}

void add_message(Json& request, const char* role, const std::string& text) {
  request["messages"].push_back({{"role", role}, {"content", text}});
}

std::vector<int32_t> encode_chat(const LanguageModel& model, const Json& request) {
  return model.encode(model.apply_chat_template(dump_json(request)));
}

std::vector<int32_t> encode_prompt(const LanguageModel& model, const PromptFlags& flags,
                                   const std::string& text) {
  if (!flags.raw && model.has_chat_template()) {
    Json request = template_request(flags);
    add_message(request, "user", text);
    return encode_chat(model, request);
  }
  const char* reason = flags.raw ? "with --raw" : "without a chat template (the model has none)";
  if (!flags.system.empty()) fail_usage("--system-prompt has no use {}", reason);
  if (!flags.template_kwargs.empty()) fail_usage("--chat-template-kwargs has no use {}", reason);
  return model.encode(text, /*add_special_tokens=*/true);
}

}  // namespace orthrus
