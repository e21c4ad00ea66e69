#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace orthrus {

/// The variables of a chat template from a request {"messages": [...], "tools": [...],
/// "add_generation_prompt": bool, "kwargs": {...}}, or from the array of messages alone: the form
/// of `orthrus template` and of LanguageModel::apply_chat_template. add_generation_prompt is true
/// where absent; kwargs become variables of their own. Error(kInput) where the JSON has another
/// form.
nlohmann::ordered_json template_context(std::string_view json);

}  // namespace orthrus
