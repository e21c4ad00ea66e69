// Filters for HTML and addresses.
#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_markup.h"
#include "text/jinja_string.h"
#include "text/jinja_urlize.h"

namespace orthrus::jinja {

namespace {

Value safe(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("safe", arguments, {});
  return input.is_markup() ? input : like(in.budget(), Value::markup(""), in.text(input));
}

Value escape(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("escape", arguments, {});
  return escaped(in.budget(), input);
}

Value forceescape(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("forceescape", arguments, {});
  return escaped(in.budget(), in.string(in.text(input)));
}

Value striptags(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("striptags", arguments, {});
  const std::string text = in.text(input);
  in.budget().bytes(2 * text.size());
  return in.string(without_tags(text));
}

std::string percent_encoded(std::string_view text, bool in_query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos;
    if (plain || (c == '/' && !in_query)) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("urlencode", arguments, {});
  const bool is_single = input.is_string() || input.is_undefined() || input.object() == nullptr ||
                         input.object()->kind > ObjectKind::kDict;
  if (is_single && !input.is_undefined()) {
    return in.string(percent_encoded(in.text(input), false));
  }
  std::string query;
  const auto add = [&](const Value& key, const Value& value) {
    if (!query.empty()) query += '&';
    query += percent_encoded(in.text(key), true) + "=" + percent_encoded(in.text(value), true);
  };
  if (input.is(ObjectKind::kDict)) {
    for (const auto& [key, value] : input.as<Mapping>()->entries) add(key, value);
  } else {
    for (const Value& pair : elements(in.budget(), input)) {
      const auto parts = elements(in.budget(), pair);
      if (parts.size() != 2) fail("urlencode: expected pairs");
      add(parts[0], parts[1]);
    }
  }
  return in.string(std::move(query));
}

Value xmlattr(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("xmlattr", arguments, {"autospace"});
  if (!input.is(ObjectKind::kDict)) fail("xmlattr: expected a mapping");
  std::string out;
  for (const auto& [key, value] : input.as<Mapping>()->entries) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) fail("xmlattr: '{}' cannot be an attribute's name", key.type_name());
    const std::string& name = key.string();
    for (std::string_view character : characters(name)) {
      const bool bad = character == "/" || character == ">" || character == "=" ||
                       is_space(decode_character(character));
      if (bad) fail("xmlattr: '{}' cannot be an attribute's name", name);
    }
    if (!out.empty() || bound.truth(0, true)) out += ' ';
    out += escaped(in.budget(), key).string() + "=\"" + escaped(in.budget(), value).string() + '"';
  }
  return in.string(std::move(out));
}

Value urlize_filter(Interpreter& in, const Value& input, const Arguments& arguments) {
  const Bound bound("urlize", arguments,
                    {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"});
  std::set<std::string> rel = {"noopener"};
  if (const auto given = bound.optional_string(3)) {
    for (std::string& part : split(*given, std::nullopt, -1, false)) rel.insert(std::move(part));
  }
  if (bound.truth(1, false)) rel.insert("nofollow");
  std::string rels;
  for (const std::string& part : rel) rels += (rels.empty() ? "" : " ") + part;
  LinkStyle style;
  style.attributes = " rel=\"" + html_escaped(rels) + '"';
  const auto target = bound.optional_string(2);
  if (target && !target->empty()) style.attributes += " target=\"" + html_escaped(*target) + '"';
  if (bound.has(0) && !bound[0].is_none()) style.shown = bound.integer(0, 0);
  if (bound.has(4) && !bound[4].is_none()) {
    for (const Value& scheme : elements(in.budget(), bound[4])) {
      if (!scheme.is_string() || !is_scheme(scheme.string())) {
        fail("urlize: an extra scheme must end in ':' or '://'");
      }
      style.schemes.push_back(scheme.string());
    }
  }
  const std::string text = escaped(in.budget(), input).string();
  in.budget().bytes(2 * text.size());
  return in.string(urlize(text, style));
}

}  // namespace

Filter find_html_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, Filter> kFilters[] = {
      {"safe", safe},
      {"escape", escape},
      {"e", escape},
      {"forceescape", forceescape},
      {"striptags", striptags},
      {"urlencode", urlencode},
      {"urlize", urlize_filter},
      {"xmlattr", xmlattr},
  };
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace orthrus::jinja
