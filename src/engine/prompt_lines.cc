#include "engine/prompt_lines.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kForms = {"token_ids", "prompt_ids", "messages", "prompt", "question"};

class LineParser {
 public:
  explicit LineParser(std::string where) : where_(std::move(where)) {}

  PromptLine parse(std::string_view text) const {
    parse_json(text, where_);               // bounds its depth; but sorts the keys, which
    const Json object = Json::parse(text);  // templates print in their own order
    if (!object.is_object())
      fail("{}: expected a JSON object, found {}", where_, object.type_name());
    const auto form = std::find_if(kForms.begin(), kForms.end(),
                                   [&](const char* name) { return object.contains(name); });
    if (form == kForms.end()) fail_without_prompt(object);
    PromptLine line;
    line.where = where_;
    line.extra = Json::object();
    for (const auto& [key, value] : object.items()) {
      key == *form ? read_form(line, key, value) : read_key(line, key, value);
    }
    return line;
  }

 private:
  [[noreturn]] void fail_without_prompt(const Json& object) const {
    constexpr size_t kMost = 8;  // of its keys
    std::string found;
    size_t count = 0;
    for (const auto& [key, value] : object.items()) {
      if (count++ < kMost)
        found += fmt::format("{}\"{}\"", found.empty() ? "" : ", ", printable(key));
    }
    fail(
        "{}: the line has no prompt: expected \"prompt\", \"question\", \"messages\", "
        "\"token_ids\" "
        "or \"prompt_ids\", its keys are {}{}",
        where_, count ? found : "none", count > kMost ? " and more" : "");
  }

  void read_form(PromptLine& line, const std::string& key, const Json& value) const {
    if (key == "messages") {
      expect(value.is_array(), key, "an array");
      line.messages = value;
    } else if (key == "prompt" || key == "question") {
      expect(value.is_string(), key, "a string");
      line.prompt = value.get<std::string>();
    } else {
      expect(value.is_array(), key, "an array of token ids");
      line.token_ids.emplace();
      for (const Json& id : value)
        line.token_ids->push_back(integer<int32_t>(id, key, 0, INT32_MAX));
    }
  }

  void read_key(PromptLine& line, const std::string& key, const Json& value) const {
    if (key == "tools") {
      expect(value.is_array() || value.is_null(), key, "an array or null");
      line.tools = value;
    } else if (key == "kwargs") {
      expect(value.is_object() || value.is_null(), key, "an object or null");
      line.kwargs = value.is_null() ? Json::object() : value;
    } else if (key == "max_tokens") {
      line.max_tokens = integer<int64_t>(value, key, -1, INT32_MAX);
    } else if (key == "seed") {
      line.seed = integer<uint64_t>(value, key, 0, INT64_MAX);
    } else {
      line.extra[key] = value;
    }
  }

  void expect(bool good, const std::string& key, const char* what) const {
    if (!good) fail("{}: \"{}\": expected {}", where_, key, what);
  }

  template <typename T>
  T integer(const Json& value, const std::string& key, int64_t least, int64_t most) const {
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    const bool good = value.is_number_integer() && !huge && value.get<int64_t>() >= least &&
                      value.get<int64_t>() <= most;
    if (!good) fail("{}: \"{}\": expected a whole number from {} to {}", where_, key, least, most);
    return static_cast<T>(value.get<int64_t>());
  }

  std::string where_;
};

}  // namespace

void PromptLine::add_chat(Json& request) const {
  if (messages) {
    for (const Json& message : *messages) request["messages"].push_back(message);
  }
  if (tools) request["tools"] = *tools;
  if (kwargs) request["kwargs"].update(*kwargs);
}

std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& name,
                                           int64_t limit) {
  std::vector<PromptLine> lines;
  const std::string file = name == "-" ? "stdin" : name;
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    if (limit > 0 && static_cast<int64_t>(lines.size()) == limit) break;
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    lines.push_back(LineParser(fmt::format("{}:{}", file, number)).parse(line));
  }
  return lines;
}

}  // namespace orthrus
