#include <algorithm>

#include "base/error.h"
#include "formats/printable.h"
#include "grammar/compile.h"
#include "grammar/grammar.h"
#include "grammar/schema_compiler.h"

namespace orthrus {

std::shared_ptr<const Grammar> json_schema_grammar(const nlohmann::ordered_json& schema) {
  try {
    return grammar::SchemaCompiler(schema).run();
  } catch (const nlohmann::json::exception&) {
    fail_usage("json_schema: a string is not valid UTF-8");
  }
}

std::shared_ptr<const Grammar> parse_json_schema(std::string_view text) {
  using Json = nlohmann::ordered_json;
  constexpr size_t kMaxBytes = size_t{1} << 20;
  constexpr int kMaxDepth = 200;
  if (text.size() > kMaxBytes) {
    fail_usage("json_schema: {} bytes, expected at most {}", text.size(), kMaxBytes);
  }
  auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) fail_usage("json_schema: nested deeper than {} levels", kMaxDepth);
    return true;
  };
  Json schema;
  try {
    schema = Json::parse(text, limit_depth);
  } catch (const Json::parse_error& error) {
    fail_usage("json_schema: not valid JSON (at byte {})", error.byte);
  } catch (const Json::exception&) {
    fail_usage("json_schema: not valid JSON (a number out of range)");
  }
  return json_schema_grammar(schema);
}

}  // namespace orthrus
