#pragma once

#include "server/api_json.h"

namespace orthrus {

/// Reads "messages" into what chat templates expect: contents are texts (parts are joined with line
/// ends), developers are systems, arguments of tool calls are objects where they are JSON.
/// ApiError for anything but text, and for roles and members that do not exist.
nlohmann::ordered_json read_messages(ObjectReader& body);

/// Reads "messages", "add_generation_prompt" (`generation_prompt` where absent) and
/// "chat_template_kwargs" into the variables of a chat template.
nlohmann::ordered_json read_template_context(ObjectReader& body, bool generation_prompt,
                                             const nlohmann::ordered_json& defaults);

}  // namespace orthrus
