#include "grammar/text_reader.h"

#include "formats/printable.h"

namespace orthrus::grammar {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_character(char32_t code) { return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff); }

}  // namespace

void append_utf8(std::string& out, char32_t code) {
  auto add = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
    return;
  }
  const int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr char32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  add(kLead[following] | code >> (6 * following));
  for (int i = following; i-- > 0;) add(0x80 | (code >> (6 * i) & 0x3f));
}

void TextReader::next() {
  if (text_[position_++] == '\n') {
    ++line_;
    line_begin_ = position_;
  }
}

bool TextReader::take(std::string_view word) {
  if (!text_.substr(position_).starts_with(word)) return false;
  position_ += word.size();
  return true;
}

char32_t TextReader::character() {
  const auto lead = static_cast<unsigned char>(peek());
  if (done()) fail_expected("a character");
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length == 0) fail("not valid UTF-8");
  char32_t code = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(peek(i));
    if ((byte & 0xc0) != 0x80) fail("not valid UTF-8");
    code = code << 6 | (byte & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || !is_character(code)) fail("not valid UTF-8");
  for (size_t i = 0; i < length; ++i) next();
  return code;
}

char32_t TextReader::hex_character(int digits) {
  char32_t code = 0;
  for (int i = 0; i < digits; ++i) {
    const int value = hex_value(peek());
    if (value < 0) fail_expected(fmt::format("{} hexadecimal digits", digits));
    code = code << 4 | static_cast<char32_t>(value);
    next();
  }
  if (!is_character(code)) fail("U+{:X} is no character", static_cast<uint32_t>(code));
  return code;
}

std::string TextReader::where() const {
  return fmt::format("line {}, column {}", line_, position_ - line_begin_ + 1);
}

void TextReader::fail_expected(std::string_view expected) const {
  constexpr size_t kShown = 12;
  const std::string found =
      done() ? "the end" : fmt::format("\"{}\"", printable(text_.substr(position_, kShown)));
  fail("expected {}, found {}", expected, found);
}

}  // namespace orthrus::grammar
