#include <map>
#include <optional>

#include "base/error.h"
#include "formats/printable.h"
#include "grammar/compile.h"
#include "grammar/grammar.h"
#include "grammar/json_rules.h"
#include "grammar/schema_compiler.h"
#include "grammar/schema_text.h"
#include "grammar/text_reader.h"

namespace orthrus {
namespace {

using grammar::CodePoints;
using grammar::Expressions;
using Expr = Expressions::Expr;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxNesting = 64;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// llama.cpp's notation with JSON schemas, by recursive descent.
class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : in_("grammar", text), out_("grammar") {}

  std::shared_ptr<const Grammar> parse() {
    skip(true);
    while (!in_.done()) parse_rule();
    for (const auto& [name, used] : rules_) {
      if (!used.defined) {
        fail_usage("grammar: {}: rule \"{}\" is not defined", used.where, printable(name));
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) fail_usage("grammar: no rule \"root\"");
    return compile(out_, root->second.rule);
  }

 private:
  struct Name {
    Expressions::Rule rule = 0;
    bool defined = false;
    std::string where;  // first use
  };

  /// Blanks and comments; line ends too where `lines`.
  void skip(bool lines) {
    while (!in_.done()) {
      const char c = in_.peek();
      if (c == '#') {
        while (!in_.done() && in_.peek() != '\n' && in_.peek() != '\r') in_.next();
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        in_.next();
      } else {
        return;
      }
    }
  }

  std::string_view parse_name() {
    const size_t begin = in_.position();
    while (!in_.done() && is_name(in_.peek())) in_.next();
    if (in_.position() == begin) in_.fail_expected("a rule name");
    return in_.since(begin);
  }

  Name& rule_of(std::string_view name, const std::string& where) {
    const auto [known, is_new] = rules_.try_emplace(std::string(name));
    if (is_new) known->second = {out_.add_rule(std::string(name), where), false, where};
    return known->second;
  }

  void parse_rule() {
    const std::string where = in_.where();
    const std::string_view name = parse_name();
    Name& rule = rule_of(name, where);
    if (rule.defined) fail_usage("grammar: {}: rule \"{}\" again", where, printable(name));
    rule.defined = true;
    skip(false);
    if (!in_.take("::=")) in_.fail_expected("\"::=\"");
    skip(true);
    const Expr body = parse_choice(0);
    out_.define(rule.rule, body);
    skip(false);
    if (!in_.done() && in_.peek() != '\n' && in_.peek() != '\r') in_.fail_expected("a new line");
    skip(true);
  }

  Expr parse_choice(int nesting) {
    std::vector<Expr> parts{parse_sequence(nesting)};
    for (;;) {
      // An alternative may begin on a line of its own, which cannot be a new rule's.
      auto before = in_;
      skip(true);
      if (!in_.take("|")) {
        if (nesting == 0) in_ = before;
        return out_.choice(std::move(parts));
      }
      skip(true);
      parts.push_back(parse_sequence(nesting));
    }
  }

  Expr parse_sequence(int nesting) {
    std::vector<Expr> parts;
    for (;;) {
      skip(nesting > 0);
      if (in_.done()) break;
      const char c = in_.peek();
      if (c != '"' && c != '[' && c != '(' && c != '.' && c != '%' && !is_name(c)) break;
      parts.push_back(parse_repeats(parse_item(nesting), nesting));
    }
    return out_.sequence(std::move(parts));
  }

  Expr parse_item(int nesting) {
    switch (in_.peek()) {
      case '"':
        return parse_literal();
      case '[':
        return parse_class();
      case '.':
        in_.next();
        return out_.chars(grammar::complement({}));
      case '(': {
        if (nesting == kMaxNesting) in_.fail("groups nested more than {} deep", kMaxNesting);
        in_.next();
        const Expr inner = parse_choice(nesting + 1);
        skip(true);
        if (!in_.take(")")) in_.fail_expected("\")\"");
        return inner;
      }
      case '%':
        return parse_schema();
      default: {
        const std::string where = in_.where();
        const std::string_view name = parse_name();
        return out_.call(rule_of(name, where).rule);
      }
    }
  }

  Expr parse_literal() {
    in_.next();
    std::string bytes;
    while (!in_.done() && in_.peek() != '"') grammar::append_utf8(bytes, parse_character());
    if (!in_.take("\"")) in_.fail_expected("'\"' at the end of the literal");
    return out_.literal(bytes);
  }

  Expr parse_class() {
    in_.next();
    const bool negative = in_.take("^");
    std::vector<CodePoints> ranges;
    while (!in_.done() && in_.peek() != ']') {
      const std::string where = in_.where();
      CodePoints range;
      range.first = range.last = parse_character();
      if (in_.peek() == '-' && in_.peek(1) != ']') {
        in_.next();
        range.last = parse_character();
      }
      if (range.last < range.first) fail_usage("grammar: {}: range is backwards", where);
      ranges.push_back(range);
    }
    if (!in_.take("]")) in_.fail_expected("\"]\" at the end of the class");
    if (ranges.empty() && !negative) in_.fail("a class without characters matches nothing");
    return out_.chars(negative ? grammar::complement(std::move(ranges)) : std::move(ranges));
  }

  Expr parse_schema() {
    const std::string where = in_.where();
    if (!in_.take("%json")) in_.fail_expected("\"%json\"");
    skip(true);
    if (in_.peek() != '{') in_.fail_expected("a JSON schema: an object");
    const std::string_view text = in_.rest().substr(0, grammar::json_object_bytes(in_.rest()));
    if (text.empty()) in_.fail("the JSON schema does not end");
    for (size_t i = 0; i < text.size(); ++i) in_.next();
    const auto schema =
        grammar::parse_schema_text(text, fmt::format("{}: {}: %json", out_.what(), where));
    if (!json_) json_.emplace(out_);
    return out_.call(grammar::SchemaCompiler(out_, *json_, schema, where + ": %json: ").run());
  }

  char32_t parse_character() {
    if (!in_.take("\\")) {
      if (in_.peek() == '\n' || in_.peek() == '\r') in_.fail_expected("no line end");
      return in_.character();
    }
    const char c = in_.peek();
    if (c == 'x' || c == 'u' || c == 'U') {
      in_.next();
      return in_.hex_character(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    }
    constexpr std::string_view kEscapes = "nrt\"\\[]-^";
    constexpr std::string_view kMeanings = "\n\r\t\"\\[]-^";
    const size_t index = c == '\0' ? kEscapes.npos : kEscapes.find(c);
    if (index == kEscapes.npos) in_.fail_expected("an escape: one of nrt\"\\[]-^ or x, u, U");
    in_.next();
    return static_cast<unsigned char>(kMeanings[index]);
  }

  Expr parse_repeats(Expr item, int nesting) {
    for (;;) {
      skip(nesting > 0);
      if (in_.take("*")) {
        item = out_.repeat(item, 0, Expressions::kUnbounded);
      } else if (in_.take("+")) {
        item = out_.repeat(item, 1, Expressions::kUnbounded);
      } else if (in_.take("?")) {
        item = out_.optional(item);
      } else if (in_.take("{")) {
        item = parse_counts(item);
      } else {
        return item;
      }
    }
  }

  Expr parse_counts(Expr item) {
    skip(false);
    const int64_t min = parse_count();
    int64_t max = min;
    skip(false);
    if (in_.take(",")) {
      skip(false);
      max = !in_.done() && is_digit(in_.peek()) ? parse_count() : Expressions::kUnbounded;
      skip(false);
    }
    if (!in_.take("}")) in_.fail_expected("\"}\"");
    if (max != Expressions::kUnbounded && max < min) in_.fail("{{{},{}}} is backwards", min, max);
    return out_.repeat(item, min, max);
  }

  int64_t parse_count() {
    if (in_.done() || !is_digit(in_.peek())) in_.fail_expected("a number");
    int64_t value = 0;
    while (!in_.done() && is_digit(in_.peek())) {
      value = value * 10 + (in_.peek() - '0');
      if (value > Expressions::kMaxRepeat) {
        in_.fail("repeated more than {} times", Expressions::kMaxRepeat);
      }
      in_.next();
    }
    return value;
  }

  grammar::TextReader in_;
  Expressions out_;
  std::optional<grammar::JsonRules> json_;  // for the first schema and all others
  std::map<std::string, Name> rules_;
};

}  // namespace

std::shared_ptr<const Grammar> parse_gbnf(std::string_view text) {
  if (text.size() > kMaxBytes) {
    fail_usage("grammar: {} bytes, expected at most {}", text.size(), kMaxBytes);
  }
  return GbnfParser(text).parse();
}

}  // namespace orthrus
