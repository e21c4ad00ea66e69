#include "grammar/schema_text.h"

#include "base/error.h"

namespace orthrus::grammar {

nlohmann::ordered_json parse_schema_text(std::string_view text, const std::string& what) {
  using Json = nlohmann::ordered_json;
  constexpr int kMaxDepth = 200;
  auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) fail_usage("{}: nested deeper than {} levels", what, kMaxDepth);
    return true;
  };
  try {
    return Json::parse(text, limit_depth);
  } catch (const Json::parse_error& error) {
    fail_usage("{}: not valid JSON (at byte {})", what, error.byte);
  } catch (const Json::exception&) {
    fail_usage("{}: not valid JSON (a number out of range)", what);
  }
}

size_t json_object_bytes(std::string_view text) {
  size_t open = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++open;
    } else if (c == '}' && --open == 0) {
      return i + 1;
    }
  }
  return 0;
}

}  // namespace orthrus::grammar
