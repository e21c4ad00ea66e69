#include "grammar/json_rules.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "grammar/compile.h"
#include "grammar/text_reader.h"

namespace orthrus::grammar {
namespace {

using Expr = Expressions::Expr;
constexpr int64_t kUnbounded = Expressions::kUnbounded;

/// What stands for itself in a string.
std::vector<CodePoints> plain() { return complement({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}); }

Expr digits(Expressions& out, int64_t min, int64_t max) {
  return out.repeat(out.chars({{'0', '9'}}), min, max);
}

Expr make_escape(Expressions& out) {
  const Expr hex = out.chars({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  const Expr d = out.chars({{'d', 'd'}, {'D', 'D'}});
  // A surrogate counts only as one of a pair.
  const Expr single = out.sequence(
      {out.choice(
           {out.sequence(
                {out.chars({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}}), hex}),
            out.sequence({d, out.chars({{'0', '7'}})})}),
       hex, hex});
  const Expr pair =
      out.sequence({d, out.chars({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hex, hex,
                    out.literal("\\u"), d, out.chars({{'c', 'f'}, {'C', 'F'}}), hex, hex});
  const Expr named = out.chars({{'"', '"'},
                                {'\\', '\\'},
                                {'/', '/'},
                                {'b', 'b'},
                                {'f', 'f'},
                                {'n', 'n'},
                                {'r', 'r'},
                                {'t', 't'}});
  return out.sequence(
      {out.literal("\\"),
       out.choice({named, out.sequence({out.literal("u"), out.choice({single, pair})})})});
}

Expr make_number(Expressions& out) {
  const Expr whole =
      out.choice({out.literal("0"), out.sequence({out.chars({{'1', '9'}}), digits(out, 0, 18)})});
  const Expr fraction = out.sequence({out.literal("."), digits(out, 1, 18)});
  const Expr exponent =
      out.sequence({out.chars({{'e', 'e'}, {'E', 'E'}}),
                    out.optional(out.chars({{'+', '+'}, {'-', '-'}})), digits(out, 1, 2)});
  return out.sequence(
      {out.optional(out.literal("-")), whole, out.optional(fraction), out.optional(exponent)});
}

}  // namespace

JsonRules::JsonRules(Expressions& out)
    : out_(out), comma_(out.literal(",")), colon_(out.literal(":")), quote_(out.literal("\"")) {
  const Expr line = out.sequence(
      {out.literal("\n"),
       out.choice({out.repeat(out.literal(" "), 0, 24), out.repeat(out.literal("\t"), 0, 8)})});
  space_ = out.as_rule("space", out.optional(out.choice({out.literal(" "), line})), false);
  plain_characters_ = out.repeat(out.chars(plain()), 0, kUnbounded);
  const Expr escape = make_escape(out);
  escape_ = out.as_rule("escape", escape, false);
  character_ = out.choice({out.chars(plain()), escape});
  string_ = out.as_rule("string", quoted(out.repeat(character_, 0, kUnbounded)), false);
  number_ = out.as_rule("number", make_number(out), false);

  const auto value = out.add_rule("value", ""), object = out.add_rule("object", ""),
             array = out.add_rule("array", "");
  for (const auto rule : {value, object, array}) out.keep_apart(rule);
  value_ = out.call(value);
  object_ = out.call(object);
  array_ = out.call(array);
  auto list = [&](Expr item) {
    return out.sequence({item, out.repeat(further(item), 0, kUnbounded)});
  };
  out.define(value, out.choice({object_, array_, string_, number_, out.literal("true"),
                                out.literal("false"), out.literal("null")}));
  out.define(object, enclosed('{', list(member(string_, value_)), true, '}'));
  out.define(array, enclosed('[', list(value_), true, ']'));
}

JsonRules::Expr JsonRules::enclosed(char open, Expr inner, bool may_be_empty, char close) {
  const Expr filled = out_.sequence({inner, space_});
  return out_.sequence({out_.literal(std::string(1, open)), space_,
                        may_be_empty ? out_.optional(filled) : filled,
                        out_.literal(std::string(1, close))});
}

JsonRules::Expr JsonRules::characters(int64_t min, int64_t max) {
  // Each count has states of its own. With the bytes of all characters among them masks are cheap;
  // of many counts only ASCII is, and a character beyond it is a call, as an escape always is.
  constexpr int64_t kMany = 2000;
  Expr character = out_.choice({out_.chars(plain()), escape_});
  if (std::max(min, max) > kMany) {
    const Expr beyond = out_.chars(intersection(plain(), {{0x80, 0x10ffff}}));
    character = out_.choice({out_.chars(intersection(plain(), {{0, 0x7f}})),
                             out_.as_rule("character", out_.choice({beyond, escape_}), false)});
  }
  return out_.repeat_in_place(character, min, max);
}

JsonRules::Expr JsonRules::one_of(const std::vector<CodePoints>& ranges) {
  std::vector<Expr> parts{out_.chars(intersection(ranges, plain()))};
  constexpr std::string_view kNamed = "\b\f\n\r\t\"\\";
  constexpr std::string_view kNames = "bfnrt\"\\";
  auto add = [&](char32_t code) {
    const size_t named = kNamed.find(static_cast<char>(code));
    parts.push_back(out_.literal(named == kNamed.npos
                                     ? fmt::format("\\u{:04x}", static_cast<uint32_t>(code))
                                     : std::string{'\\', kNames[named]}));
  };
  for (const CodePoints& range : intersection(ranges, {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}})) {
    for (char32_t code = range.first; code <= range.last; ++code) add(code);
  }
  return out_.choice(std::move(parts));
}

JsonRules::Expr JsonRules::string_except(std::vector<std::string_view> names) {
  std::vector<std::u32string> decoded;
  for (const std::string_view name : names) {
    TextReader in(out_.what(), name);
    for (decoded.emplace_back(); !in.done();) decoded.back() += in.character();
  }
  return quoted(except({decoded.begin(), decoded.end()}, 0));
}

/// What may follow the first `position` characters, which all of `names` have in common.
JsonRules::Expr JsonRules::except(const std::vector<std::u32string_view>& names, size_t position) {
  std::map<char32_t, std::vector<std::u32string_view>> next;
  bool ended = false;
  for (const auto& name : names) {
    if (name.size() == position) {
      ended = true;
    } else {
      next[name[position]].push_back(name);
    }
  }
  std::vector<CodePoints> known;
  std::vector<Expr> parts;
  for (const auto& [code, group] : next) {
    known.push_back({code, code});
    if (intersection(plain(), {{code, code}}).empty()) continue;
    std::string bytes;
    append_utf8(bytes, code);
    parts.push_back(out_.sequence({out_.literal(bytes), except(group, position + 1)}));
  }
  parts.push_back(
      out_.sequence({out_.chars(intersection(plain(), complement(known))), plain_characters_}));
  if (!ended) parts.push_back(out_.literal(""));
  return out_.choice(std::move(parts));
}

}  // namespace orthrus::grammar

namespace orthrus {

std::shared_ptr<const Grammar> json_object_grammar() {
  static const auto made = [] {
    grammar::Expressions out("json_object");
    const grammar::JsonRules json(out);
    const auto root = out.add_rule("root", "");
    out.define(root, json.object());
    return compile(out, root);
  }();
  return made;
}

}  // namespace orthrus
