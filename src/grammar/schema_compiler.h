#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_number.h"
#include "grammar/json_rules.h"

namespace orthrus::grammar {

/// Writes one JSON schema as rules. Paths are those of the schema, as in "#/properties/a".
class SchemaCompiler {
 public:
  using Json = nlohmann::ordered_json;

  /// In messages `place` stands between what the expressions are and the path; it is empty, or ends
  /// with ": ". All must outlive this.
  SchemaCompiler(Expressions& out, JsonRules& json, const Json& schema, std::string place);
  /// The rule of the values that satisfy the schema. Once.
  Expressions::Rule run();

 private:
  using Expr = Expressions::Expr;
  struct Property {
    Expr member = 0;
    bool required = false;
  };

  /// For messages: whose schema it is, and where in it.
  std::string shown(const std::string& path) const;
  [[noreturn]] void fail_at(const std::string& path, const std::string& message) const;
  /// The keyword's value, or null.
  static const Json* find(const Json& schema, const char* keyword);
  /// A count; `fallback` where it is absent.
  int64_t count(const Json& schema, const char* keyword, int64_t fallback,
                const std::string& path) const;

  Expr compile(const Json& schema, const std::string& path, int depth);
  void check_keywords(const Json& schema, const std::string& path) const;
  /// Refuses whatever stands beside `keyword` but annotations and `also`.
  void check_alone(const Json& schema, const char* keyword, std::string_view also,
                   const std::string& path) const;
  std::vector<std::string> types(const Json& schema, const std::string& path) const;
  Expr compile_type(const std::string& type, const Json& schema, const std::string& path,
                    int depth);
  Expr compile_reference(const Json& reference, const std::string& path);
  const Json& resolve(const std::string& reference, const std::string& path) const;
  Expr compile_any_of(const Json& schemas, const std::string& path, int depth);
  Expr compile_values(const Json& schema, const Json& values, const std::string& path);
  Expr value_text(const Json& value);

  Expr compile_object(const Json& schema, const std::string& path, int depth);
  /// The declared properties and those that are only required.
  std::vector<Property> properties(const Json& schema, const Json* additional,
                                   const std::string& path, int depth);
  /// Members in their order, at least one; `extra` ones behind them.
  Expr members(const std::vector<Property>& properties, const Expr* extra);
  Expr compile_array(const Json& schema, const std::string& path, int depth);
  Expr compile_string(const Json& schema, const std::string& path);
  Expr compile_number(const Json& schema, bool integer, const std::string& path);
  std::optional<Bound> representable(const std::optional<Bound>& bound, bool is_min,
                                     const std::string& path) const;
  Expr compile_integer(const std::optional<Bound>& min, const std::optional<Bound>& max,
                       int64_t multiple, const std::string& path);

  Expressions& out_;
  JsonRules& json_;
  const Json& root_;
  const std::string place_;
  std::map<std::string, Expressions::Rule> references_;
  std::vector<std::string> to_do_;  // references whose rule is not defined yet
};

}  // namespace orthrus::grammar
