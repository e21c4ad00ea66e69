#include <algorithm>

#include "base/error.h"
#include "text/jinja_layout.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

constexpr int64_t kWidth = 80;

int64_t width_of(std::string_view text) { return static_cast<int64_t>(count_characters(text)); }

bool comes_before(Budget& budget, const Value& a, const Value& b) {
  const bool ordered = (a.is_string() && b.is_string()) || (a.is_number() && b.is_number());
  return ordered ? compare(budget, a, b) == -1 : a.type_name() < b.type_name();
}

/// With the keys of every dict in order.
Value sorted(Budget& budget, const Value& value) {
  if (value.is(ObjectKind::kDict)) {
    Entries entries;
    for (const auto& [key, item] : value.as<Mapping>()->entries) {
      entries.emplace_back(sorted(budget, key), sorted(budget, item));
    }
    std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
      return comes_before(budget, a.first, b.first);
    });
    return make_dict(budget, std::move(entries));
  }
  if (!value.is(ObjectKind::kList) && !value.is(ObjectKind::kTuple)) return value;
  if (value.as<Sequence>()->group) return value;  // has a repr of its own
  std::vector<Value> items;
  for (const Value& item : elements(budget, value)) items.push_back(sorted(budget, item));
  return make_sequence(budget, value.object()->kind, std::move(items));
}

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  /// `allowance`: the characters that have to follow on the last line.
  void write(const Value& value, int64_t indent, int64_t allowance, int level) {
    const std::string whole = to_repr(budget_, value);
    if (width_of(whole) <= kWidth - indent - allowance) {
      out_ += whole;
    } else if (value.is(ObjectKind::kDict)) {
      write_dict(value.as<Mapping>()->entries, indent + 1, allowance + 1, level + 1);
    } else if (value.is(ObjectKind::kList)) {
      write_items(value.as<Sequence>()->items, "[", "]", indent + 1, allowance + 1, level + 1);
    } else if (value.is(ObjectKind::kTuple) && !value.as<Sequence>()->group) {
      const auto& items = value.as<Sequence>()->items;
      const std::string_view close = items.size() == 1 ? ",)" : ")";
      write_items(items, "(", close, indent + 1, allowance + width_of(close), level + 1);
    } else if (value.is_string() && !value.is_markup()) {
      write_text(value.string(), indent, allowance, level + 1);
    } else {
      out_ += whole;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void new_line(int64_t indent) {
    budget_.bytes(static_cast<uint64_t>(indent) + 2);
    out_ += '\n';
    out_.append(static_cast<size_t>(indent), ' ');
  }

  void write_dict(const Entries& entries, int64_t indent, int64_t allowance, int level) {
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool last = i + 1 == entries.size();
      const std::string key = to_repr(budget_, entries[i].first);
      out_ += key + ": ";
      write(entries[i].second, indent + width_of(key) + 2, last ? allowance : 1, level);
      if (last) continue;
      out_ += ',';
      new_line(indent);
    }
    out_ += '}';
  }

  void write_items(const std::vector<Value>& items, std::string_view open, std::string_view close,
                   int64_t indent, int64_t allowance, int level) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      write(items[i], indent, last ? allowance : 1, level);
      if (last) continue;
      out_ += ',';
      new_line(indent);
    }
    out_ += close;
  }

  /// Literals below one another: a line each, and within it as many words as fit.
  void write_text(std::string_view text, int64_t indent, int64_t allowance, int level) {
    if (text.empty()) {
      out_ += "''";
      return;
    }
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> literals;
    const std::vector<std::string> lines = split_lines(text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      std::string literal = quoted(lines[i]);
      budget_.bytes(2 * literal.size());
      if (width_of(literal) <= kWidth - indent - (last ? allowance : 0)) {
        literals.push_back(std::move(literal));
      } else {
        add_words(literals, lines[i], kWidth - indent, last ? allowance : 0);
      }
    }
    if (literals.size() == 1) {
      out_ += quoted(lines.back());
      return;
    }
    if (level == 1) out_ += '(';
    for (size_t i = 0; i < literals.size(); ++i) {
      if (i > 0) new_line(indent);
      out_ += literals[i];
    }
    if (level == 1) out_ += ')';
  }

  static void add_words(std::vector<std::string>& literals, std::string_view line, int64_t width,
                        int64_t allowance) {
    std::string current;
    while (!line.empty()) {
      const size_t word = line.size() - strip_word(line).size();
      const std::string_view part = line.substr(0, word);
      line.remove_prefix(word);
      if (line.empty()) width -= allowance;
      if (!current.empty() && width_of(quoted(current + std::string(part))) > width) {
        literals.push_back(quoted(current));
        current.clear();
      }
      current += part;
    }
    literals.push_back(quoted(current));
  }

  /// Without its first word and the space after it.
  static std::string_view strip_word(std::string_view text) {
    const size_t end = word_end(text);
    return strip(text.substr(end), std::nullopt, kLeft);
  }

  Budget& budget_;
  std::string out_;
};

}  // namespace

std::string pretty(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.write(sorted(budget, value), 0, 0, 0);
  return printer.take();
}

}  // namespace orthrus::jinja
