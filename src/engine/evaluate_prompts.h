#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"

namespace orthrus {

/// The token ids of the prompts in a JSONL text, at most `limit` of them (0: all). A line is an
/// object with one of, the first that is there: "token_ids" or "prompt_ids" (taken as they are);
/// "messages" (the chat template's, with "tools" and "kwargs" if any); "question" or "prompt" (a
/// user's message where the model has a chat template and `raw` is false, else plain text). Empty
/// lines are skipped. `where` names the file in messages. Error(kInput) where a line has another
/// form, where there is none at all, or where messages meet a model without a template.
std::vector<std::vector<int32_t>> read_prompts(const LoadedModel& model, std::string_view jsonl,
                                               const std::string& where, int64_t limit, bool raw);

}  // namespace orthrus
