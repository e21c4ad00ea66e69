#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace orthrus {

/// A validator of the keywords that tests/grammar uses; independent of src/grammar.
class SchemaChecker {
 public:
  using Json = nlohmann::ordered_json;
  explicit SchemaChecker(Json root) : root_(std::move(root)) {}
  bool valid(const Json& value) const { return valid(root_, value); }

 private:
  static bool is_type(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return value.type_name() == type;
  }

  bool valid(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    if (schema.contains("$ref")) {
      const auto target = schema["$ref"].get<std::string>();
      return valid(target == "#" ? root_ : root_.at(Json::json_pointer(target.substr(1))), value);
    }
    if (schema.contains("anyOf")) {
      for (const Json& part : schema["anyOf"]) {
        if (valid(part, value)) return true;
      }
      return false;
    }
    if (schema.contains("const") && value != schema["const"]) return false;
    if (schema.contains("enum")) {
      const Json& list = schema["enum"];
      if (std::find(list.begin(), list.end(), value) == list.end()) return false;
    }
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      bool any = false;
      for (const Json& name : type.is_array() ? type : Json::array({type})) {
        any = any || is_type(value, name.get<std::string>());
      }
      if (!any) return false;
    }
    if (value.is_object()) return valid_object(schema, value);
    if (value.is_array()) return valid_array(schema, value);
    if (value.is_string()) return valid_string(schema, value.get<std::string>());
    if (value.is_number_integer() && schema.contains("multipleOf") &&
        value.get<int64_t>() % schema["multipleOf"].get<int64_t>() != 0) {
      return false;
    }
    if (value.is_number()) return valid_number(schema, value.get<double>());
    return true;
  }

  bool valid_object(const Json& schema, const Json& value) const {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return false;
    }
    const Json properties = schema.value("properties", Json::object());
    const Json additional = schema.value("additionalProperties", Json(true));
    for (const auto& [name, item] : value.items()) {
      if (!valid(properties.contains(name) ? properties[name] : additional, item)) return false;
    }
    return true;
  }

  bool valid_array(const Json& schema, const Json& value) const {
    if (value.size() < schema.value("minItems", 0u)) return false;
    if (value.size() > schema.value("maxItems", 1u << 30)) return false;
    const Json prefix = schema.value("prefixItems", Json::array());
    for (size_t i = 0; i < value.size(); ++i) {
      if (!valid(i < prefix.size() ? prefix[i] : schema.value("items", Json(true)), value[i])) {
        return false;
      }
    }
    return true;
  }

  static bool valid_string(const Json& schema, const std::string& value) {
    size_t characters = 0;
    for (const char c : value) characters += (c & 0xc0) != 0x80;
    if (characters < schema.value("minLength", 0u)) return false;
    if (characters > schema.value("maxLength", 1u << 30)) return false;
    return !schema.contains("pattern") ||
           std::regex_search(value, std::regex(schema["pattern"].get<std::string>()));
  }

  static bool valid_number(const Json& schema, double value) {
    if (schema.contains("minimum") && value < schema["minimum"].get<double>()) return false;
    if (schema.contains("maximum") && value > schema["maximum"].get<double>()) return false;
    if (schema.contains("exclusiveMinimum") && value <= schema["exclusiveMinimum"].get<double>()) {
      return false;
    }
    return !schema.contains("exclusiveMaximum") || value < schema["exclusiveMaximum"].get<double>();
  }

  Json root_;
};

}  // namespace orthrus
