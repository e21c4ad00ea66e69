#include <algorithm>

#include "base/error.h"
#include "formats/printable.h"
#include "grammar/schema_compiler.h"

namespace orthrus::grammar {
namespace {

constexpr size_t kMaxProperties = 1000;
constexpr size_t kMaxNameBytes = 256;
constexpr int64_t kUnbounded = Expressions::kUnbounded;

/// As a part of a JSON pointer.
std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

}  // namespace

SchemaCompiler::Expr SchemaCompiler::compile_object(const Json& schema, const std::string& path,
                                                    int depth) {
  const Json* declared = find(schema, "properties");
  if (declared && !declared->is_object()) fail_at(path, "\"properties\" must be an object");
  const Json* additional = find(schema, "additionalProperties");
  const Json open = true, closed = false;
  // JSON Schema lets further properties in where nothing is said; beside declared ones the model is
  // not invited to invent any.
  if (!additional) additional = declared ? &closed : &open;
  const std::vector<Property> listed = properties(schema, additional, path, depth);
  const bool none_required = std::none_of(
      listed.begin(), listed.end(), [](const Property& property) { return property.required; });
  if (*additional == closed) {
    if (listed.empty()) return out_.sequence({out_.literal("{"), json_.space(), out_.literal("}")});
    const Expr body = json_.enclosed('{', members(listed, nullptr), none_required, '}');
    return out_.as_rule(path, body, false);
  }
  if (listed.empty() && *additional == open) return json_.object();
  std::vector<std::string_view> names;
  std::vector<std::string> required_names;
  if (const Json* required = find(schema, "required")) {
    required_names = required->get<std::vector<std::string>>();
  }
  if (declared) {
    for (auto item = declared->begin(); item != declared->end(); ++item)
      names.push_back(item.key());
  }
  names.insert(names.end(), required_names.begin(), required_names.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const Expr value = compile(*additional, path + "/additionalProperties", depth + 1);
  const Expr extra =
      json_.member(names.empty() ? json_.string() : json_.string_except(names), value);
  const Expr body = json_.enclosed('{', members(listed, &extra), none_required, '}');
  return out_.as_rule(path, body, false);
}

std::vector<SchemaCompiler::Property> SchemaCompiler::properties(const Json& schema,
                                                                 const Json* additional,
                                                                 const std::string& path,
                                                                 int depth) {
  const Json* required = find(schema, "required");
  std::vector<std::string> names;
  if (required) {
    const bool strings =
        required->is_array() && std::all_of(required->begin(), required->end(),
                                            [](const Json& name) { return name.is_string(); });
    if (!strings) fail_at(path, "\"required\" must be an array of strings");
    names = required->get<std::vector<std::string>>();
  }
  const Json* declared = find(schema, "properties");
  const size_t total = names.size() + (declared ? declared->size() : 0);
  if (total > 2 * kMaxProperties) {
    fail_at(path, fmt::format("more than {} properties", kMaxProperties));
  }
  std::vector<Property> out;
  auto add = [&](const std::string& name, Expr value, bool is_required) {
    if (name.size() > kMaxNameBytes) {
      fail_at(path, fmt::format("the name of a property has more than {} bytes", kMaxNameBytes));
    }
    out.push_back({json_.member(out_.literal(Json(name).dump()), value), is_required});
  };
  if (declared) {
    for (auto item = declared->begin(); item != declared->end(); ++item) {
      const auto listed = std::find(names.begin(), names.end(), item.key());
      const std::string inner = path + "/properties/" + escaped(item.key());
      add(item.key(), compile(*item, inner, depth + 1), listed != names.end());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (declared && declared->contains(name)) continue;
    if (additional->is_boolean() && !additional->get<bool>()) {
      fail_at(path, fmt::format("\"required\": \"{}\" is none of the properties", printable(name)));
    }
    add(name, compile(*additional, path + "/additionalProperties", depth + 1), true);
  }
  if (out.size() > kMaxProperties) {
    fail_at(path, fmt::format("more than {} properties", kMaxProperties));
  }
  return out;
}

SchemaCompiler::Expr SchemaCompiler::members(const std::vector<Property>& properties,
                                             const Expr* extra) {
  // From the last property on: what follows one that was written, and what a first one may be.
  Expr behind = out_.literal("");
  std::vector<Expr> first;
  if (extra) {
    behind = out_.repeat(json_.further(*extra), 0, kUnbounded);
    first.push_back(out_.sequence({*extra, behind}));
  }
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    if (property.required) first.clear();
    first.push_back(out_.sequence({property.member, behind}));
    Expr further = json_.further(property.member);
    if (!property.required) further = out_.optional(further);
    behind = out_.sequence({further, behind});
  }
  return out_.choice(std::move(first));
}

SchemaCompiler::Expr SchemaCompiler::compile_array(const Json& schema, const std::string& path,
                                                   int depth) {
  const int64_t min = count(schema, "minItems", 0, path);
  int64_t max = count(schema, "maxItems", kUnbounded, path);
  std::vector<Expr> first;
  if (const Json* list = find(schema, "prefixItems")) {
    if (!list->is_array()) fail_at(path, "\"prefixItems\" must be an array");
    if (list->size() > kMaxProperties) {
      fail_at(path, fmt::format("more than {} schemas in \"prefixItems\"", kMaxProperties));
    }
    for (size_t i = 0; i < list->size(); ++i) {
      first.push_back(compile((*list)[i], fmt::format("{}/prefixItems/{}", path, i), depth + 1));
    }
  }
  const auto listed = static_cast<int64_t>(first.size());
  Expr item = json_.value();
  if (const Json* items = find(schema, "items")) {
    if (items->is_array()) fail_at(path, "\"items\" must be a schema; lists are \"prefixItems\"");
    item = compile(*items, path + "/items", depth + 1);
    if (*items == Json(false)) max = max == kUnbounded ? listed : std::min(max, listed);
  }
  if (max != kUnbounded && max < min) fail_at(path, "\"minItems\" is more than there can be");
  if (max == 0) return out_.sequence({out_.literal("["), json_.space(), out_.literal("]")});

  // From the last item on: what may follow when so many are written.
  auto left = [&](int64_t written) {
    return max == kUnbounded ? kUnbounded : std::max<int64_t>(max - written, 0);
  };
  const int64_t written = std::max<int64_t>(listed, 1);
  Expr behind =
      out_.repeat(json_.further(item), std::max<int64_t>(min - written, 0), left(written));
  for (int64_t i = listed - 1; i >= 1; --i) {
    if (left(i) == 0) {
      behind = out_.literal("");
      continue;
    }
    behind = out_.sequence({json_.further(first[static_cast<size_t>(i)]), behind});
    if (i >= min) behind = out_.optional(behind);
  }
  const Expr inner = out_.sequence({first.empty() ? item : first[0], behind});
  return out_.as_rule(path, json_.enclosed('[', inner, min == 0, ']'), false);
}

}  // namespace orthrus::grammar
