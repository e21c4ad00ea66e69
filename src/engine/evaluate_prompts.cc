#include "engine/evaluate_prompts.h"

#include <algorithm>

#include "base/error.h"
#include "engine/template_request.h"
#include "formats/json.h"

namespace orthrus {
namespace {

using nlohmann::json;

class PromptReader {
 public:
  PromptReader(const LoadedModel& model, bool raw) : model_(model), raw_(raw) {}

  std::vector<int32_t> read(const json& line, const std::string& where) const {
    if (!line.is_object()) fail("{}: expected an object, found {}", where, line.type_name());
    for (const char* key : {"token_ids", "prompt_ids"}) {
      if (line.contains(key)) return ids(line[key], where, key);
    }
    if (line.contains("messages")) return chat(line["messages"], line, where);
    for (const char* key : {"question", "prompt"}) {
      if (!line.contains(key)) continue;
      if (!line[key].is_string()) fail("{}: {} is no string", where, key);
      return text(line[key].get<std::string>(), where);
    }
    fail("{}: expected one of token_ids, prompt_ids, messages, question, prompt, found none",
         where);
  }

 private:
  std::vector<int32_t> ids(const json& list, const std::string& where, const char* key) const {
    const int64_t vocab = model_.model.config.vocab_size;
    std::vector<int32_t> result;
    if (!list.is_array()) fail("{}: {} is no list of token ids", where, key);
    for (const json& id : list) {
      if (!id.is_number_integer() || id < 0 || id >= vocab) {
        fail("{}: {} holds {}, expected ids from 0 to {}", where, key, id.dump(), vocab - 1);
      }
      result.push_back(id.get<int32_t>());
    }
    return result;
  }

  std::vector<int32_t> text(const std::string& content, const std::string& where) const {
    if (raw_ || !model_.chat_template) return model_.tokenizer.encode(content);
    return chat(json::array({{{"role", "user"}, {"content", content}}}), json::object(), where);
  }

  std::vector<int32_t> chat(const json& messages, const json& line,
                            const std::string& where) const {
    if (!model_.chat_template) {
      fail("{}: messages need a chat template, and the model has none", where);
    }
    json request = {{"messages", messages}};
    for (const char* key : {"tools", "kwargs"}) {
      if (line.contains(key)) request[key] = line[key];
    }
    return model_.tokenizer.encode(model_.chat_template->render(template_context(request.dump())));
  }

  const LoadedModel& model_;
  bool raw_;
};

}  // namespace

std::vector<std::vector<int32_t>> read_prompts(const LoadedModel& model, std::string_view jsonl,
                                               const std::string& where, int64_t limit, bool raw) {
  const PromptReader reader(model, raw);
  std::vector<std::vector<int32_t>> prompts;
  int64_t number = 0;
  while (!jsonl.empty() && (limit == 0 || static_cast<int64_t>(prompts.size()) < limit)) {
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view line = jsonl.substr(0, end);
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string at = fmt::format("{}:{}", where, number);
    prompts.push_back(reader.read(parse_json(line, at), at));
  }
  if (prompts.empty()) fail("{}: no prompts, expected one JSON object a line", where);
  return prompts;
}

}  // namespace orthrus
