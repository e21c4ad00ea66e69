#include "text/jinja_markup.h"

#include <algorithm>
#include <charconv>

#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '"') {
      out += "&#34;";
    } else {
      out += c;
    }
  }
  return out;
}

Value escaped(Budget& budget, const Value& value) {
  if (value.is_markup()) return value;
  std::string text = html_escaped(to_string(budget, value));
  budget.bytes(text.size());
  return Value::markup(std::move(text));
}

Value like(Budget& budget, const Value& model, std::string text) {
  if (!model.is_markup()) return make_string(budget, std::move(text));
  budget.bytes(text.size());
  return Value::markup(std::move(text));
}

namespace {

/// Methods whose text arguments are looked for, not inserted.
constexpr std::string_view kTakePlain[] = {
    "strip",     "lstrip",     "rstrip",       "split",        "rsplit",
    "partition", "rpartition", "removeprefix", "removesuffix", "splitlines"};

bool takes_plain(std::string_view name) {
  return std::find(std::begin(kTakePlain), std::end(kTakePlain), name) != std::end(kTakePlain);
}

Value marked(Budget& budget, const Value& value) {
  if (value.is_string()) return Value::markup(value.string());
  if (!value.is(ObjectKind::kList) && !value.is(ObjectKind::kTuple)) return value;
  std::vector<Value> items;
  for (const Value& item : elements(budget, value)) items.push_back(marked(budget, item));
  return make_sequence(budget, value.object()->kind, std::move(items));
}

Value escaped_text(Budget& budget, const Value& value) {
  return value.is_string() ? escaped(budget, value) : value;
}

}  // namespace

Value call_marked(Interpreter& in, std::string_view name, Method method, const Value& self,
                  const Arguments& arguments) {
  Arguments changed = arguments;
  if (name == "join" && changed.positional.size() == 1) {
    std::vector<Value> items;
    for (const Value& item : elements(in.budget(), changed.positional[0])) {
      items.push_back(escaped(in.budget(), item));
    }
    changed.positional[0] = make_sequence(in.budget(), ObjectKind::kList, std::move(items));
  } else if (name == "replace") {
    if (changed.positional.size() > 1) {
      changed.positional[1] = escaped_text(in.budget(), changed.positional[1]);
    }
  } else if (!takes_plain(name)) {
    for (Value& value : changed.positional) value = escaped_text(in.budget(), value);
    for (auto& [key, value] : changed.named) value = escaped_text(in.budget(), value);
  }
  return marked(in.budget(), method(in, self, changed));
}

namespace {

/// The character that "&...;" stands for, by what is between & and ;.
std::optional<uint32_t> referred(std::string_view name) {
  static constexpr std::pair<std::string_view, uint32_t> kNames[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xa0}};
  for (const auto& [known, code_point] : kNames) {
    if (known == name) return code_point;
  }
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const int base = name.starts_with('x') || name.starts_with('X') ? 16 : 10;
  if (base == 16) name.remove_prefix(1);
  uint32_t code_point = 0;
  const auto end = std::from_chars(name.data(), name.data() + name.size(), code_point, base);
  if (end.ec != std::errc() || end.ptr != name.data() + name.size()) return std::nullopt;
  const bool valid =
      code_point > 0 && code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
  return valid ? code_point : 0xfffd;
}

std::string unescaped(std::string_view text) {
  constexpr size_t kLongest = 32;
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = text[at] == '&' ? text.substr(at, kLongest).find(';') : std::string::npos;
    const auto code_point =
        end == std::string::npos ? std::nullopt : referred(text.substr(at + 1, end - 1));
    if (code_point) {
      append_utf8(out, *code_point);
      at += end;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

std::string without_tags(std::string_view text) {
  std::string kept;
  while (true) {
    const size_t start = std::min(text.find('<'), text.size());
    const bool comment = text.substr(start).starts_with("<!--");
    const size_t end = comment ? text.find("-->", start + 4) : text.find('>', start);
    if (start == text.size() || end == std::string_view::npos) break;
    kept += text.substr(0, start);
    text.remove_prefix(end + (comment ? 3 : 1));
  }
  kept += text;
  std::string joined;
  for (const std::string& word : split(kept, std::nullopt, -1, false)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  return unescaped(joined);
}

}  // namespace orthrus::jinja
