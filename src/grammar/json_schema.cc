#include "base/error.h"
#include "grammar/compile.h"
#include "grammar/grammar.h"
#include "grammar/schema_compiler.h"
#include "grammar/schema_text.h"

namespace orthrus {

std::shared_ptr<const Grammar> json_schema_grammar(const nlohmann::ordered_json& schema) {
  grammar::Expressions out("json_schema");
  grammar::JsonRules json(out);
  return compile(out, grammar::SchemaCompiler(out, json, schema, "").run());
}

uint64_t check_json_schema(const nlohmann::ordered_json& schema, std::string_view what) {
  grammar::Expressions out{std::string(what)};
  grammar::JsonRules json(out);
  grammar::SchemaCompiler(out, json, schema, "").run();
  return out.size();
}

std::shared_ptr<const Grammar> parse_json_schema(std::string_view text) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  if (text.size() > kMaxBytes) {
    fail_usage("json_schema: {} bytes, expected at most {}", text.size(), kMaxBytes);
  }
  return json_schema_grammar(grammar::parse_schema_text(text, "json_schema"));
}

}  // namespace orthrus
