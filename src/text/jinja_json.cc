#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

Value convert(Budget& budget, const nlohmann::ordered_json& json, int depth) {
  if (depth > Budget::kMaxDepth) fail("values nest deeper than {}", Budget::kMaxDepth);
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_unsigned()) return Value(static_cast<Int>(json.get<uint64_t>()));
  if (json.is_number_integer()) return Value(static_cast<Int>(json.get<int64_t>()));
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (!is_valid_utf8(text)) fail("a string of the template's context is not UTF-8");
    return make_string(budget, text);
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(convert(budget, item, depth + 1));
    return make_sequence(budget, ObjectKind::kList, std::move(items));
  }
  if (json.is_object()) {
    Entries entries;
    for (const auto& [key, item] : json.items()) {
      if (!is_valid_utf8(key)) fail("a key of the template's context is not UTF-8");
      entries.emplace_back(make_string(budget, key), convert(budget, item, depth + 1));
    }
    return make_dict(budget, std::move(entries));
  }
  return Value();
}

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  void write(const Value& value, int level) {
    budget_.step();
    const size_t before = out_.size();
    if (value.is_string()) {
      write_string(value.string());
    } else if (value.is(ObjectKind::kDict)) {
      return write_dict(value.as<Mapping>()->entries, level);
    } else if (value.is(ObjectKind::kList) || value.is(ObjectKind::kTuple)) {
      return write_list(value.as<Sequence>()->items, level);
    } else {
      out_ += scalar(value);
    }
    budget_.bytes(out_.size() - before);
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return value.truth() ? "true" : "false";
    if (value.is_integer()) return int_repr(value.integer());
    if (!value.is_float()) fail("a {} cannot be written as JSON", value.type_name());
    const double number = value.number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_repr(number);
  }

  void write_string(std::string_view text) {
    out_ += '"';
    for (std::string_view character : characters(text)) write_character(character);
    out_ += '"';
  }

  void write_character(std::string_view character) {
    static constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f";
    static constexpr std::string_view kNames = "\"\\nrtbf";
    const int32_t c = decode_character(character);
    const size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
    if (special != std::string_view::npos) {
      out_ += '\\';
      out_ += kNames[special];
    } else if (c < 0x20 || (style_.ascii && c > 0x7e && c < 0x10000)) {
      out_ += fmt::format("\\u{:04x}", c);
    } else if (style_.ascii && c >= 0x10000) {
      const int32_t rest = c - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
      out_ += character;
    }
  }

  void new_line(int level) {
    if (!style_.indent) return;
    budget_.bytes(1 + style_.indent->size() * static_cast<size_t>(level));
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void write_list(const std::vector<Value>& items, int level) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      write(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    out_ += ']';
  }

  void write_dict(Entries entries, int level) {
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return compare(budget_, a.first, b.first) == -1;
      });
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line(level + 1);
      budget_.bytes(style_.item_separator.size() + style_.key_separator.size());
      write_string(key.is_string() ? key.string() : scalar(key));
      out_ += style_.key_separator;
      write(value, level + 1);
    }
    if (!entries.empty()) new_line(level);
    out_ += '}';
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

Value from_json(Budget& budget, const nlohmann::ordered_json& json) {
  return convert(budget, json, 1);
}

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  Writer writer(budget, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace orthrus::jinja
