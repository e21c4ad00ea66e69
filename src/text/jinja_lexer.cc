#include "text/jinja_lexer.h"

#include <algorithm>
#include <charconv>

#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

/// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t tag = find_tag();
      const std::string_view before = view(at_, tag);
      if (tag == source_.size()) {
        add_data(before);
        move_to(tag);
      } else {
        read_tag(before, tag);
      }
    }
    tokens_.push_back({TokenKind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  std::string_view view(size_t from, size_t to) const {
    return std::string_view(source_).substr(from, to - from);
  }
  bool starts(size_t at, std::string_view text) const {
    return std::string_view(source_).substr(at).starts_with(text);
  }

  void move_to(size_t to) {
    const std::string_view passed = view(at_, to);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
    at_ = to;
  }

  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at != std::string::npos;
         at = source_.find('{', at + 1)) {
      if (starts(at, "{{") || starts(at, "{%") || starts(at, "{#")) return at;
    }
    return source_.size();
  }

  void add_data(std::string_view text) {
    if (!text.empty()) tokens_.push_back({TokenKind::kData, std::string(text), line_});
  }

  size_t skip_space(size_t at) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    return source_.size() - strip(rest, std::nullopt, kLeft).size();
  }

  /// The text before a tag, as its sign ('-', '+' or none) and lstrip_blocks leave it.
  std::string_view stripped_before(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip(text, std::nullopt, kRight);
    if (sign == '+' || is_variable) return text;
    const size_t line_start = text.rfind('\n') + 1;  // 0 where there is none
    if (line_start == 0 && !line_starting_) return text;
    const bool blank = strip(text.substr(line_start), std::nullopt, kLeft).empty();
    return blank ? text.substr(0, line_start) : text;
  }

  void read_tag(std::string_view before, size_t tag) {
    const char kind = source_[tag + 1];
    size_t inside = tag + 2;
    const char sign = starts(inside, "-") ? '-' : starts(inside, "+") ? '+' : ' ';
    if (sign != ' ') ++inside;
    const std::string_view text = stripped_before(before, sign, kind == '{');
    add_data(text);
    if (kind == '#') {
      move_to(tag);
      return read_comment(inside);
    }
    if (kind == '%' && read_raw(tag, inside)) return;
    move_to(inside);
    tokens_.push_back(
        {kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "", line_});
    read_expression(kind == '{');
  }

  /// Past the end of a block or comment that closes at `at` with `close`; trim_blocks.
  size_t after_close(size_t at, std::string_view close, char sign) const {
    at += close.size();
    if (sign == '-') return skip_space(at);
    return sign == ' ' && starts(at, "\n") ? at + 1 : at;
  }

  void read_comment(size_t inside) {
    const size_t close = source_.find("#}", inside);
    if (close == std::string::npos) fail_at(line_, "comment without an end");
    const char last = close > inside ? source_[close - 1] : ' ';
    move_to(after_close(close, "#}", last == '-' || last == '+' ? last : ' '));
  }

  /// Where the tag at `tag` is {% raw %}: reads through {% endraw %}.
  bool read_raw(size_t tag, size_t inside) {
    size_t at = skip_space(inside);
    if (!starts(at, "raw")) return false;
    at = skip_space(at + 3);
    const bool trims = starts(at, "-%}");
    if (!trims && !starts(at, "%}")) return false;
    move_to(trims ? skip_space(at + 3) : at + 2);
    if (at_ == source_.size()) return true;  // Jinja minds a missing end only where text follows
    for (size_t end = source_.find("{%", at_); end != std::string::npos;
         end = source_.find("{%", end + 1)) {
      if (read_end_of_raw(end)) return true;
    }
    fail_at(line_, "raw block without {{% endraw %}}");
  }

  bool read_end_of_raw(size_t tag) {
    size_t at = tag + 2;
    const char sign = starts(at, "-") ? '-' : starts(at, "+") ? '+' : ' ';
    at = skip_space(sign == ' ' ? at : at + 1);
    if (!starts(at, "endraw")) return false;
    at = skip_space(at + 6);
    const char last = starts(at, "-%}") ? '-' : starts(at, "+%}") ? '+' : ' ';
    if (last != ' ') ++at;
    if (!starts(at, "%}")) return false;
    add_data(stripped_before(view(at_, tag), sign, false));
    move_to(after_close(at, "%}", last));
    return true;
  }

  void read_expression(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    std::string open_brackets;
    while (true) {
      move_to(skip_space(at_));
      if (at_ == source_.size()) fail_at(line_, "tag without an end, expected '{}'", close);
      if (open_brackets.empty() && read_close(is_variable, close)) return;
      read_token(open_brackets);
    }
  }

  bool read_close(bool is_variable, std::string_view close) {
    char sign = ' ';
    if (starts(at_, "-") || (!is_variable && starts(at_, "+"))) sign = source_[at_];
    const size_t at = at_ + (sign == ' ' ? 0 : 1);
    if (!starts(at, close)) return false;
    tokens_.push_back({is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "", line_});
    const bool keeps_newline = is_variable && sign == ' ';
    move_to(keeps_newline ? at + close.size() : after_close(at, close, sign));
    return true;
  }

  void read_token(std::string& open_brackets) {
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (is_name_character(c)) return read_name();
    if (c == '\'' || c == '"') return read_string(c);
    read_operator(open_brackets);
  }

  void read_name() {
    size_t end = at_;
    while (end < source_.size() && is_name_character(source_[end])) ++end;
    add(TokenKind::kName, end);
  }

  void add(TokenKind kind, size_t end) {
    tokens_.push_back({kind, std::string(view(at_, end)), line_});
    move_to(end);
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_at(line_, "string without an end");
    auto text = unescape(view(at_ + 1, end));
    if (!text) fail_at(line_, "string with a malformed escape");
    tokens_.push_back({TokenKind::kString, std::move(*text), line_});
    move_to(end + 1);
  }

  /// Past digits with single underscores between them; `at` itself where there are none.
  size_t skip_digits(size_t at) const {
    if (at >= source_.size() || !is_digit(source_[at])) return at;
    while (at < source_.size()) {
      if (is_digit(source_[at])) {
        ++at;
      } else if (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1])) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  void read_number() {
    const size_t whole = skip_digits(at_);
    size_t end = whole;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // x.0.1: two subscripts
    if (!after_dot && starts(end, ".") && skip_digits(end + 1) > end + 1)
      end = skip_digits(end + 1);
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t digits = end + (starts(end + 1, "+") || starts(end + 1, "-") ? 2 : 1);
      if (skip_digits(digits) > digits) end = skip_digits(digits);
    }
    end > whole ? add_float(end) : add_integer(whole);
  }

  void add_float(size_t end) {
    std::string digits(view(at_, end));
    std::erase(digits, '_');
    add(TokenKind::kFloat, end);
    double number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc()) fail_at(line_, "number {} out of range", digits);
    tokens_.back().number = Value(number);
  }

  void add_integer(size_t end) {
    int base = 10;
    size_t start = at_;
    const char mark = end == at_ + 1 && source_[at_] == '0' && end < source_.size()
                          ? static_cast<char>(source_[end] | 0x20)
                          : ' ';
    if (mark == 'x' || mark == 'o' || mark == 'b') {
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
      start = end + 1;
      end = start;
      while (end < source_.size() && is_name_character(source_[end])) ++end;
    }
    std::string digits(view(start, end));
    std::erase(digits, '_');
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      fail_at(line_, "integer {} with leading zeros", digits);
    }
    uint64_t number = 0;
    const char* last = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), last, number, base);
    if (read.ec != std::errc() || read.ptr != last) fail_at(line_, "unreadable integer {}", digits);
    add(TokenKind::kInteger, end);
    tokens_.back().number = Value(static_cast<Int>(number));
  }

  void read_operator(std::string& open_brackets) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}=<>.:|,;";
    const char c = source_[at_];
    size_t size = kOne.find(c) == std::string_view::npos ? 0 : 1;
    for (std::string_view two : kTwo) {
      if (starts(at_, two)) size = 2;
    }
    if (size == 0) fail_at(line_, "unexpected character '{}'", c);
    if (c == '(') open_brackets += ')';
    if (c == '[') open_brackets += ']';
    if (c == '{') open_brackets += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c) fail_at(line_, "unexpected '{}'", c);
      open_brackets.pop_back();
    }
    add(TokenKind::kOperator, at_ + size);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what was passed last ended a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (!is_valid_utf8(source)) fail("chat template is not UTF-8");
  return Lexer(source).run();
}

}  // namespace orthrus::jinja
