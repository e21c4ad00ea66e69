#include "engine/template_request.h"

#include "base/error.h"
#include "formats/json.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {
constexpr int kMaxDepth = 128;  // values are walked by recursion
}  // namespace

Json template_context(std::string_view json) {
  parse_json(json, "template request", kMaxDepth);  // but it sorts the keys
  Json request = Json::parse(json);
  if (request.is_array()) request = {{"messages", std::move(request)}};
  if (!request.is_object()) {
    fail("template request: expected a JSON object or an array of messages, found {}",
         request.type_name());
  }
  if (!request.contains("messages")) fail("template request: \"messages\" is missing");
  Json context = Json::object();
  context["add_generation_prompt"] = true;
  for (const auto& item : request.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    const auto expect = [&](bool ok, const char* what) {
      if (!ok) fail("template request: \"{}\" is {}, expected {}", key, value.type_name(), what);
    };
    if (key == "messages") {
      expect(value.is_array(), "an array");
      context[key] = value;
    } else if (key == "tools") {
      expect(value.is_array() || value.is_null(), "an array or null");
      if (value.is_array()) context[key] = value;
    } else if (key == "add_generation_prompt") {
      expect(value.is_boolean(), "true or false");
      context[key] = value;
    } else if (key == "kwargs") {
      expect(value.is_object() || value.is_null(), "an object or null");
      for (const auto& [name, extra] : value.items()) context[name] = extra;
    } else {
      fail(
          "template request: unknown key \"{}\", expected messages, tools, add_generation_prompt "
          "or kwargs",
          key);
    }
  }
  return context;
}

}  // namespace orthrus
