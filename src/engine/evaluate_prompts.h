#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"

namespace orthrus {

/// The token ids of the prompts in a JSONL text (prompt_lines.h), at most `limit` of them (0: all).
/// A "prompt" or "question" is a user's message where the model has a chat template and `raw` is
/// false, else plain text; "max_tokens" and "seed" have no effect, as an evaluation gives all
/// prompts the same. `where` names the file in messages. Error(kInput) where a line has another
/// form or a token outside the vocabulary, where there is none at all, or where messages meet a
/// model without a template.
std::vector<std::vector<int32_t>> read_prompts(const LoadedModel& model, std::string_view jsonl,
                                               const std::string& where, int64_t limit, bool raw);

}  // namespace orthrus
