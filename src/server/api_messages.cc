#include "server/api_messages.h"

#include <fmt/format.h>

#include "formats/printable.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxMessages = 100'000;
constexpr size_t kMaxText = SIZE_MAX;  // the body has a limit
constexpr size_t kMaxName = 512;

std::string read_part(const Json& part, const std::string& path) {
  ObjectReader reader(part, path);
  if (!reader.has("type")) reader.fail("type", "\"text\"");
  reader.choice("type", {"text"}, 0);
  if (!reader.has("text")) reader.fail("text", "a string");
  const std::string text = reader.string("text", kMaxText);
  reader.finish();
  return text;
}

std::string read_content(ObjectReader& message) {
  const Json* content = message.find("content");
  if (!content) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) message.fail("content", "a text or a list of parts");
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    if (i > 0) text += '\n';
    text += read_part((*content)[i], fmt::format("{}[{}]", message.path_of("content"), i));
  }
  return text;
}

// Templates print arguments with `tojson`: a text would come out quoted twice. What is no JSON (an
// answer that was cut off) stays the text that it is.
Json arguments_value(const std::string& text) {
  try {
    Json value = parse_request_json(text);
    if (value.is_object()) return value;
  } catch (const ApiError&) {
  }
  return text;
}

Json read_call(const Json& call, const std::string& path) {
  ObjectReader reader(call, path);
  const std::string id = reader.string("id", kMaxName);
  reader.choice("type", {"function"}, 0);
  reader.integer("index", 0, INT32_MAX, 0);  // of a streamed call that was sent back
  const Json* member = reader.object("function");
  if (!member) reader.fail("function", "an object");
  reader.finish();
  ObjectReader function(*member, reader.path_of("function"));
  const std::string name = function.string("name", kMaxName);
  if (name.empty()) function.fail("name", "a name");
  if (!function.has("arguments")) function.fail("arguments", "a string of JSON");
  const std::string arguments = function.string("arguments", kMaxText);
  function.finish();
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", arguments_value(arguments)}}}};
}

void read_assistant(ObjectReader& message, Json& out) {
  if (message.has("reasoning_content")) {
    out["reasoning_content"] = message.string("reasoning_content", kMaxText);
  }
  if (const Json* calls = message.array("tool_calls", kMaxMessages); calls && !calls->empty()) {
    Json list = Json::array();
    for (size_t i = 0; i < calls->size(); ++i) {
      list.push_back(
          read_call((*calls)[i], fmt::format("{}[{}]", message.path_of("tool_calls"), i)));
    }
    out["tool_calls"] = std::move(list);
  }
  // What the client library sends back of an answer's other members.
  if (const Json* notes = message.array("annotations", kMaxMessages); notes && !notes->empty()) {
    message.refuse("annotations", "there is no search");
  }
  message.refuse("audio", "the model reads text only");
  message.refuse("refusal", "send it as content");
  message.refuse("function_call", "use tool_calls");
  if (!message.has("content") && !out.contains("tool_calls") &&
      !out.contains("reasoning_content")) {
    message.fail("content", "content or tool_calls");
  }
}

Json read_message(const Json& json, size_t index) {
  enum Role { kSystem, kDeveloper, kUser, kAssistant, kTool };
  static const std::vector<std::string> kRoles = {"system", "developer", "user", "assistant",
                                                  "tool"};
  ObjectReader message(json, fmt::format("messages[{}]", index));
  if (!message.has("role")) {
    message.fail("role", "one of \"system\", \"developer\", \"user\", \"assistant\", \"tool\"");
  }
  const int role = message.choice("role", kRoles, 0);
  Json out = {{"role", role == kDeveloper ? "system" : kRoles[static_cast<size_t>(role)]},
              {"content", read_content(message)}};
  if (message.has("name")) out["name"] = message.string("name", kMaxName);
  if (role == kAssistant) {
    read_assistant(message, out);
  } else if (!message.has("content")) {
    message.fail("content", "a text or a list of parts");
  }
  if (role == kTool) {
    if (!message.has("tool_call_id")) message.fail("tool_call_id", "the id of a call");
    out["tool_call_id"] = message.string("tool_call_id", kMaxName);
  }
  message.finish();
  return out;
}

}  // namespace

Json read_messages(ObjectReader& body) {
  const Json* messages = body.array("messages", kMaxMessages);
  if (!messages || messages->empty()) body.fail("messages", "a list of at least one message");
  Json out = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) out.push_back(read_message((*messages)[i], i));
  return out;
}

Json read_template_context(ObjectReader& body, bool generation_prompt, const Json& defaults) {
  Json context = {
      {"messages", read_messages(body)},
      {"add_generation_prompt", body.boolean("add_generation_prompt", generation_prompt)}};
  for (const auto& [name, value] : defaults.items()) {
    if (!context.contains(name)) context[name] = value;
  }
  const Json* kwargs = body.object("chat_template_kwargs");
  if (!kwargs) return context;
  for (const auto& [name, value] : kwargs->items()) {
    if (name == "messages" || name == "add_generation_prompt" || name == "tools") {
      const std::string path = "chat_template_kwargs." + printable(name);
      throw bad_request(fmt::format("{}: {} is a parameter of its own.", path, printable(name)),
                        path, "invalid_value");
    }
    context[name] = value;
  }
  return context;
}

}  // namespace orthrus
