#include "text/content_parts.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxRoles = 8;  // each is a rendering more
constexpr const char* kMark = "orthrus-part-7d1f";

bool is_parts(const Json& message) {
  if (!message.is_object()) return false;
  const auto content = message.find("content");
  if (content == message.end() || !content->is_array()) return false;
  return std::all_of(content->begin(), content->end(), [](const Json& part) {
    return part.is_object() && part.contains("type") && part["type"].is_string();
  });
}

const Json* messages_of(const Json& context) {
  const auto messages = context.find("messages");
  return messages != context.end() && messages->is_array() ? &*messages : nullptr;
}

/// The message's parts as one text. `index` is the message's, for errors.
std::string joined(const Json& message, size_t index) {
  std::string whole;
  size_t at = 0;
  for (const Json& part : message["content"]) {
    const auto& type = part["type"].get_ref<const std::string&>();
    const auto text = part.find("text");
    if (type != "text") {
      fail("messages[{}].content[{}] is of type \"{}\", expected \"text\"", index, at, type);
    }
    if (text == part.end() || !text->is_string()) {
      fail("messages[{}].content[{}] has no \"text\" that is a string", index, at);
    }
    if (at++ > 0) whole += '\n';
    whole += text->get_ref<const std::string&>();
  }
  return whole;
}

std::string role_of(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && role->is_string() ? role->get<std::string>() : "";
}

/// Whether the mark is in `text` other than as the value of a list that was printed whole.
bool is_written_out(const std::string& text) {
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
    const std::string_view before = std::string_view(text).substr(0, at);
    const bool printed = before.ends_with("'text': '") || before.ends_with("\"text\": \"") ||
                         before.ends_with("\"text\":\"");
    if (!printed) return true;
  }
  return false;
}

bool walks_parts(Json trial, const Json& original, const std::string& role,
                 const RenderTemplate& render) {
  const Json marked = Json::array({{{"type", "text"}, {"text", kMark}}});
  for (size_t i = 0; i < original.size(); ++i) {
    if (is_parts(original[i]) && role_of(original[i]) == role) {
      trial["messages"][i]["content"] = marked;
    }
  }
  try {
    return is_written_out(render(trial));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return false;  // the template takes no lists
  }
}

}  // namespace

bool has_content_parts(const Json& context) {
  const Json* messages = messages_of(context);
  return messages != nullptr && std::any_of(messages->begin(), messages->end(), is_parts);
}

Json fitted_parts(const Json& context, const RenderTemplate& render) {
  const Json& messages = *messages_of(context);
  Json all_joined = context;
  std::set<std::string> roles;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_parts(messages[i])) continue;
    all_joined["messages"][i]["content"] = joined(messages[i], i);
    roles.insert(role_of(messages[i]));
  }
  if (roles.size() > kMaxRoles) fail("content in parts under more than {} roles", kMaxRoles);
  Json fitted = all_joined;
  for (const std::string& role : roles) {
    if (!walks_parts(all_joined, messages, role, render)) continue;
    for (size_t i = 0; i < messages.size(); ++i) {
      if (role_of(messages[i]) == role) fitted["messages"][i] = messages[i];
    }
  }
  return fitted;
}

}  // namespace orthrus
