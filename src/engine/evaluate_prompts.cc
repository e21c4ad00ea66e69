#include "engine/evaluate_prompts.h"

#include "base/error.h"
#include "engine/prompt_lines.h"
#include "engine/template_request.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> encode(const LoadedModel& model, const PromptLine& line, bool raw) {
  if (line.token_ids) {
    const int64_t vocab = model.model.config.vocab_size;
    for (int32_t id : *line.token_ids) {
      if (id >= vocab) fail("{}: token {}, expected ids from 0 to {}", line.where, id, vocab - 1);
    }
    return *line.token_ids;
  }
  if (line.prompt && (raw || !model.chat_template)) {
    return model.tokenizer.encode(*line.prompt, /*add_special_tokens=*/true);
  }
  if (!model.chat_template) {
    fail("{}: messages need a chat template, and the model has none", line.where);
  }
  Json request = {{"messages", Json::array()}};
  if (line.prompt) request["messages"].push_back({{"role", "user"}, {"content", *line.prompt}});
  line.add_chat(request);
  return model.tokenizer.encode(model.chat_template->render(template_context(request.dump())));
}

}  // namespace

std::vector<std::vector<int32_t>> read_prompts(const LoadedModel& model, std::string_view jsonl,
                                               const std::string& where, int64_t limit, bool raw) {
  std::vector<std::vector<int32_t>> prompts;
  for (const PromptLine& line : parse_prompt_lines(jsonl, where, limit)) {
    prompts.push_back(encode(model, line, raw));
  }
  if (prompts.empty()) fail("{}: no prompts, expected one JSON object a line", where);
  return prompts;
}

}  // namespace orthrus
