#include "grammar/regex.h"

#include <optional>

#include "grammar/text_reader.h"

namespace orthrus::grammar {
namespace {

using Expr = Expressions::Expr;
using Ranges = std::vector<CodePoints>;

constexpr size_t kMaxBytes = 16384;
constexpr int kMaxNesting = 32;
constexpr int64_t kUnbounded = Expressions::kUnbounded;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// \d, \w, \s as ECMA-262 has them.
std::optional<Ranges> named_class(char name) {
  switch (name) {
    case 'd':
      return Ranges{{'0', '9'}};
    case 'w':
      return Ranges{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    case 's':
      return Ranges{{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                    {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    case 'D':
    case 'W':
    case 'S':
      return complement(*named_class(static_cast<char>(name - 'A' + 'a')));
    default:
      return std::nullopt;
  }
}

class RegexParser {
 public:
  RegexParser(Expressions& out, JsonRules& json, std::string_view pattern, const std::string& where)
      : out_(out), json_(json), in_(where, pattern) {}

  Expr parse() {
    std::vector<Expr> parts{parse_searched()};
    while (in_.take("|")) parts.push_back(parse_searched());
    if (!in_.done()) in_.fail_expected("the end");
    return out_.choice(std::move(parts));
  }

 private:
  /// An alternative of the whole pattern: it may stand anywhere in the text unless an anchor says
  /// otherwise.
  Expr parse_searched() {
    const Expr anything = out_.repeat(json_.character(), 0, kUnbounded);
    std::vector<Expr> parts;
    if (!in_.take("^")) parts.push_back(anything);
    parts.push_back(parse_sequence(0));
    if (!in_.take("$")) parts.push_back(anything);
    return out_.sequence(std::move(parts));
  }

  Expr parse_sequence(int nesting) {
    std::vector<Expr> parts;
    while (!in_.done() && in_.peek() != '|' && in_.peek() != ')') {
      if (in_.peek() == '^' || in_.peek() == '$') {
        const bool at_end = in_.peek() == '$' && (in_.peek(1) == '|' || in_.is_last());
        if (nesting == 0 && at_end) break;
        in_.fail(
            "an anchor is supported only where the pattern or one of its alternatives begins "
            "or ends");
      }
      parts.push_back(parse_repeat(parse_item(nesting)));
    }
    return out_.sequence(std::move(parts));
  }

  Expr parse_item(int nesting) {
    const char c = in_.peek();
    if (c == '(') return parse_group(nesting);
    if (c == '[') return parse_class();
    if (c == '*' || c == '+' || c == '?' || c == '{') in_.fail_expected("something to repeat");
    if (in_.take(".")) {
      return json_.one_of(complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    if (in_.take("\\")) return json_.one_of(parse_escape(false));
    const char32_t code = in_.character();
    return json_.one_of({{code, code}});
  }

  Expr parse_group(int nesting) {
    if (nesting == kMaxNesting) in_.fail("groups nested more than {} deep", kMaxNesting);
    in_.next();
    if (in_.take("?")) {
      const bool named = in_.peek() == '<' && in_.peek(1) != '=' && in_.peek(1) != '!';
      if (named) {
        while (!in_.done() && in_.peek() != '>') in_.next();
        in_.take(">");
      } else if (!in_.take(":")) {
        in_.fail("lookaround and flags are not supported");
      }
    }
    std::vector<Expr> parts{parse_sequence(nesting + 1)};
    while (in_.take("|")) parts.push_back(parse_sequence(nesting + 1));
    if (!in_.take(")")) in_.fail_expected("\")\"");
    return out_.choice(std::move(parts));
  }

  Expr parse_class() {
    in_.next();
    const bool negative = in_.take("^");
    Ranges ranges;
    while (!in_.done() && in_.peek() != ']') {
      Ranges item = parse_class_item();
      if (in_.peek() == '-' && in_.peek(1) != ']') {
        in_.next();
        const Ranges last = parse_class_item();
        const bool single = item.size() == 1 && item[0].first == item[0].last && last.size() == 1 &&
                            last[0].first == last[0].last;
        if (!single || last[0].first < item[0].first) in_.fail("not a range of characters");
        item = {{item[0].first, last[0].first}};
      }
      ranges.insert(ranges.end(), item.begin(), item.end());
    }
    if (!in_.take("]")) in_.fail_expected("\"]\" at the end of the class");
    return json_.one_of(negative ? complement(std::move(ranges)) : normalized(std::move(ranges)));
  }

  Ranges parse_class_item() {
    if (in_.take("\\")) return parse_escape(true);
    const char32_t code = in_.character();
    return {{code, code}};
  }

  /// Behind the backslash.
  Ranges parse_escape(bool in_class) {
    const char c = in_.peek();
    if (auto named = named_class(c)) {
      in_.next();
      return *named;
    }
    if (c == 'x' || c == 'u') {
      in_.next();
      const char32_t code = in_.hex_character(c == 'x' ? 2 : 4);
      return {{code, code}};
    }
    constexpr std::string_view kNames = "tnrfv0";
    constexpr std::string_view kMeanings("\t\n\r\f\v\0", 6);
    const size_t index = in_.done() ? kNames.npos : kNames.find(c);
    if (index != kNames.npos && !(c == '0' && is_digit(in_.peek(1)))) {
      in_.next();
      const auto code = static_cast<char32_t>(kMeanings[index]);
      return {{code, code}};
    }
    // Letters and digits have meanings that cannot be kept: \b, \1, \p{..}, \k<..>.
    constexpr std::string_view kSymbols = "^$\\.*+?()[]{}|/-\"'`~!@#%&_=:;,<> ";
    if (in_.done() || kSymbols.find(c) == kSymbols.npos) {
      in_.fail("the escape \"\\{}\" is not supported{}",
               in_.done() || static_cast<unsigned char>(c) < 0x20 || c < 0 ? '?' : c,
               in_class ? " in a class" : "");
    }
    in_.next();
    return {{static_cast<char32_t>(c), static_cast<char32_t>(c)}};
  }

  Expr parse_repeat(Expr item) {
    int64_t min = 0, max = kUnbounded;
    if (in_.take("+")) {
      min = 1;
    } else if (in_.take("?")) {
      max = 1;
    } else if (in_.take("{")) {
      max = min = parse_count();
      if (in_.take(",")) max = is_digit(in_.peek()) ? parse_count() : kUnbounded;
      if (!in_.take("}")) in_.fail_expected("\"}\"");
      if (max != kUnbounded && max < min) in_.fail("{{{},{}}} is backwards", min, max);
    } else if (!in_.take("*")) {
      return item;
    }
    in_.take("?");  // lazy: which match is found does not matter
    return out_.repeat(item, min, max);
  }

  int64_t parse_count() {
    if (!is_digit(in_.peek())) in_.fail_expected("a number");
    int64_t value = 0;
    for (; is_digit(in_.peek()); in_.next()) {
      value = value * 10 + (in_.peek() - '0');
      if (value > Expressions::kMaxRepeat) {
        in_.fail("repeated more than {} times", Expressions::kMaxRepeat);
      }
    }
    return value;
  }

  Expressions& out_;
  JsonRules& json_;
  TextReader in_;
};

}  // namespace

Expr regex_content(Expressions& out, JsonRules& json, std::string_view pattern,
                   const std::string& where) {
  if (pattern.size() > kMaxBytes) {
    fail_usage("{}: {} bytes, expected at most {}", where, pattern.size(), kMaxBytes);
  }
  return RegexParser(out, json, pattern, where).parse();
}

}  // namespace orthrus::grammar
