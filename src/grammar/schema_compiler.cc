#include "grammar/schema_compiler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus::grammar {
namespace {

using Json = SchemaCompiler::Json;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxValues = 10000;

/// They say nothing about which values are right.
const std::set<std::string_view> kAnnotations = {
    "$schema",     "$comment",  "$defs",           "definitions",     "title",
    "description", "default",   "example",         "examples",        "deprecated",
    "readOnly",    "writeOnly", "contentEncoding", "contentMediaType"};

/// Keywords that restrict values of one type.
const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kTypeKeywords = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};

const std::set<std::string_view> kTypes = {"null",   "boolean", "object", "array",
                                           "number", "integer", "string"};

bool is_type_keyword(std::string_view keyword) {
  for (const auto& [type, keywords] : kTypeKeywords) {
    if (std::find(keywords.begin(), keywords.end(), keyword) != keywords.end()) return true;
  }
  return false;
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  const bool whole =
      value.is_number_float() && value.get<double>() == std::floor(value.get<double>());
  return value.is_number_integer() || whole;
}

}  // namespace

SchemaCompiler::SchemaCompiler(Expressions& out, JsonRules& json, const Json& schema,
                               std::string place)
    : out_(out), json_(json), root_(schema), place_(std::move(place)) {}

Expressions::Rule SchemaCompiler::run() {
  try {
    compile_reference("#", "#");
    while (!to_do_.empty()) {
      const std::string path = to_do_.back();
      to_do_.pop_back();
      out_.define(references_.at(path), compile(resolve(path, path), path, 0));
    }
  } catch (const Json::exception&) {
    fail_usage("{}: {}a string is not valid UTF-8", out_.what(), place_);
  }
  return references_.at("#");
}

std::string SchemaCompiler::shown(const std::string& path) const {
  return fmt::format("{}: {}{}", out_.what(), place_, printable(path));
}

void SchemaCompiler::fail_at(const std::string& path, const std::string& message) const {
  fail_usage("{}: {}", shown(path), message);
}

const Json* SchemaCompiler::find(const Json& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

int64_t SchemaCompiler::count(const Json& schema, const char* keyword, int64_t fallback,
                              const std::string& path) const {
  const Json* value = find(schema, keyword);
  if (!value) return fallback;
  const bool whole = has_type(*value, "integer");
  const double number = whole ? value->get<double>() : -1;
  if (number < 0) fail_at(path, fmt::format("\"{}\" must be a whole number, 0 or more", keyword));
  if (number > static_cast<double>(Expressions::kMaxRepeat)) {
    fail_at(path, fmt::format("\"{}\": at most {} is supported", keyword, Expressions::kMaxRepeat));
  }
  return static_cast<int64_t>(number);
}

void SchemaCompiler::check_keywords(const Json& schema, const std::string& path) const {
  constexpr std::string_view kOthers[] = {"type", "enum", "const", "anyOf", "allOf", "$ref"};
  for (const auto& [keyword, value] : schema.items()) {
    const bool known =
        kAnnotations.contains(keyword) || is_type_keyword(keyword) ||
        std::find(std::begin(kOthers), std::end(kOthers), keyword) != std::end(kOthers) ||
        (keyword == "$id" && path == "#");
    if (!known) fail_at(path, fmt::format("keyword \"{}\" is not supported", printable(keyword)));
  }
}

void SchemaCompiler::check_alone(const Json& schema, const char* keyword, std::string_view also,
                                 const std::string& path) const {
  for (const auto& [other, value] : schema.items()) {
    if (other == keyword || other == also || other == "$id" || kAnnotations.contains(other)) {
      continue;
    }
    fail_at(path, fmt::format("keyword \"{}\" is not supported beside \"{}\"", other, keyword));
  }
}

SchemaCompiler::Expr SchemaCompiler::compile(const Json& schema, const std::string& path,
                                             int depth) {
  if (depth > kMaxDepth) fail_at(path, fmt::format("nested deeper than {} levels", kMaxDepth));
  if (schema.is_boolean()) return schema.get<bool>() ? json_.value() : out_.chars({});
  if (!schema.is_object()) fail_at(path, "a schema must be an object, true or false");
  check_keywords(schema, path);
  if (const Json* reference = find(schema, "$ref")) {
    check_alone(schema, "$ref", "", path);
    return compile_reference(*reference, path);
  }
  if (const Json* schemas = find(schema, "anyOf")) {
    check_alone(schema, "anyOf", "", path);
    return compile_any_of(*schemas, path + "/anyOf", depth);
  }
  if (const Json* schemas = find(schema, "allOf")) {
    check_alone(schema, "allOf", "", path);
    if (!schemas->is_array() || schemas->size() != 1) {
      fail_at(path, "keyword \"allOf\" is supported only with one schema");
    }
    return compile((*schemas)[0], path + "/allOf/0", depth + 1);
  }
  if (const Json* value = find(schema, "const")) {
    check_alone(schema, "const", "type", path);
    return compile_values(schema, Json::array({*value}), path);
  }
  if (const Json* values = find(schema, "enum")) {
    check_alone(schema, "enum", "type", path);
    if (!values->is_array()) fail_at(path, "\"enum\" must be an array");
    return compile_values(schema, *values, path);
  }
  std::vector<Expr> parts;
  for (const std::string& type : types(schema, path)) {
    parts.push_back(compile_type(type, schema, path, depth));
  }
  return parts.empty() ? json_.value() : out_.choice(std::move(parts));
}

/// Those named, else those for which there are keywords; none: all.
std::vector<std::string> SchemaCompiler::types(const Json& schema, const std::string& path) const {
  std::vector<std::string> out;
  if (const Json* type = find(schema, "type")) {
    const Json list = type->is_array() ? *type : Json::array({*type});
    for (const Json& name : list) {
      if (!name.is_string() || !kTypes.contains(name.get<std::string>())) {
        fail_at(path,
                "\"type\" must be null, boolean, object, array, number, integer, string, or "
                "a list of them");
      }
      out.push_back(name.get<std::string>());
    }
    if (out.empty()) fail_at(path, "\"type\" must not be empty");
    return out;
  }
  for (const auto& [type, keywords] : kTypeKeywords) {
    const bool any = std::any_of(keywords.begin(), keywords.end(), [&](std::string_view keyword) {
      return schema.contains(keyword);
    });
    if (any) out.emplace_back(type);
  }
  return out;
}

SchemaCompiler::Expr SchemaCompiler::compile_type(const std::string& type, const Json& schema,
                                                  const std::string& path, int depth) {
  if (type == "null") return out_.literal("null");
  if (type == "boolean") return out_.choice({out_.literal("true"), out_.literal("false")});
  if (type == "object") return compile_object(schema, path, depth);
  if (type == "array") return compile_array(schema, path, depth);
  if (type == "string") return compile_string(schema, path);
  return compile_number(schema, type == "integer", path);
}

SchemaCompiler::Expr SchemaCompiler::compile_any_of(const Json& schemas, const std::string& path,
                                                    int depth) {
  if (!schemas.is_array() || schemas.empty()) fail_at(path, "must be an array of schemas");
  std::vector<Expr> parts;
  for (size_t i = 0; i < schemas.size(); ++i) {
    parts.push_back(compile(schemas[i], fmt::format("{}/{}", path, i), depth + 1));
  }
  return out_.choice(std::move(parts));
}

SchemaCompiler::Expr SchemaCompiler::compile_values(const Json& schema, const Json& values,
                                                    const std::string& path) {
  if (values.size() > kMaxValues) {
    fail_at(path, fmt::format("more than {} values in \"enum\"", kMaxValues));
  }
  const std::vector<std::string> allowed = types(schema, path);
  std::vector<Expr> parts;
  for (const Json& value : values) {
    const bool fits = allowed.empty() || std::any_of(allowed.begin(), allowed.end(),
                                                     [&](auto& t) { return has_type(value, t); });
    if (fits) parts.push_back(value_text(value));
  }
  if (parts.empty()) fail_at(path, "no value of \"enum\" or \"const\" is of the type");
  return out_.choice(std::move(parts));
}

SchemaCompiler::Expr SchemaCompiler::value_text(const Json& value) {
  if (!value.is_structured() || value.empty()) return out_.literal(value.dump());
  std::vector<Expr> parts;
  for (auto item = value.begin(); item != value.end(); ++item) {
    Expr part = value_text(*item);
    if (value.is_object()) part = json_.member(out_.literal(Json(item.key()).dump()), part);
    parts.push_back(parts.empty() ? part : json_.further(part));
  }
  const Expr inner = out_.sequence(std::move(parts));
  return value.is_object() ? json_.enclosed('{', inner, false, '}')
                           : json_.enclosed('[', inner, false, ']');
}

SchemaCompiler::Expr SchemaCompiler::compile_reference(const Json& reference,
                                                       const std::string& path) {
  if (!reference.is_string()) fail_at(path, "\"$ref\" must be a string");
  const auto target = reference.get<std::string>();
  const auto known = references_.find(target);
  if (known != references_.end()) return out_.call(known->second);
  resolve(target, path);
  const Expressions::Rule rule = out_.add_rule(target, place_ + printable(target));
  references_.emplace(target, rule);
  to_do_.push_back(target);
  return out_.call(rule);
}

const Json& SchemaCompiler::resolve(const std::string& reference, const std::string& path) const {
  if (reference == "#") return root_;
  const std::string shown = printable(reference);
  if (!reference.starts_with("#/")) {
    fail_at(path,
            fmt::format("\"$ref\": \"{}\" is not supported, only \"#\" and \"#/...\"", shown));
  }
  try {
    const Json::json_pointer pointer(reference.substr(1));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const Json::exception&) {
    fail_at(path, fmt::format("\"$ref\": \"{}\" is malformed", shown));
  }
  fail_at(path, fmt::format("\"$ref\": \"{}\" is not there", shown));
}

}  // namespace orthrus::grammar
