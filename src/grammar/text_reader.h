#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace orthrus::grammar {

/// Appends the UTF-8 of a code point up to U+10FFFF that is no surrogate.
void append_utf8(std::string& out, char32_t code);

/// A text that is parsed from its beginning to its end. What it throws is Error(kUsage) with the
/// line and the column (in bytes).
class TextReader {
 public:
  /// `what` begins every message. The text must outlive this.
  TextReader(std::string what, std::string_view text) : what_(std::move(what)), text_(text) {}

  bool done() const { return position_ == text_.size(); }
  bool is_last() const { return position_ + 1 == text_.size(); }
  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }
  std::string_view since(size_t begin) const { return text_.substr(begin, position_ - begin); }
  /// The byte so far ahead; 0 behind the end.
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  void next();
  /// Whether the text goes on with `word`, which is then read.
  bool take(std::string_view word);
  /// Reads one character of UTF-8.
  char32_t character();
  /// Reads so many hexadecimal digits: a code point.
  char32_t hex_character(int digits);
  /// "line 3, column 7"
  std::string where() const;

  /// Names what was found at the place.
  [[noreturn]] void fail_expected(std::string_view expected) const;
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_usage("{}: {}: {}", what_, where(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string what_;
  std::string_view text_;
  size_t position_ = 0;
  int64_t line_ = 1;
  size_t line_begin_ = 0;
};

}  // namespace orthrus::grammar
