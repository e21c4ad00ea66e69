#pragma once

#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace orthrus {

/// A chat template request ({"messages", "kwargs"}) with the flags' system message, if any.
nlohmann::ordered_json template_request(const PromptFlags& flags);

/// Adds {"role": role, "content": text} to the request's messages.
void add_message(nlohmann::ordered_json& request, const char* role, const std::string& text);

/// Token ids of the rendered request.
std::vector<int32_t> encode_chat(const LanguageModel& model, const nlohmann::ordered_json& request);

/// Token ids of a user's text: in the chat template where the model has one, else (or with --raw)
/// as it is. Error(kUsage) for a system message or template variables without a template.
std::vector<int32_t> encode_prompt(const LanguageModel& model, const PromptFlags& flags,
                                   const std::string& text);

}  // namespace orthrus
