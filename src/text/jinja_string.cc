#include "text/jinja_string.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace orthrus::jinja {

namespace {

size_t sequence_length(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

bool is_line_end(int32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_cased(int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

void append_upper(std::string& out, int32_t c, bool at_word_start) {
  if (c == 0xdf) {
    out += at_word_start ? "Ss" : "SS";  // the sharp s has no single capital
  } else {
    append_utf8(out,
                static_cast<uint32_t>(at_word_start ? utf8proc_totitle(c) : utf8proc_toupper(c)));
  }
}

void append_lower(std::string& out, int32_t c) {
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(c)));
}

template <typename Function>
std::string mapped(std::string_view text, Function append) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view character : characters(text)) append(out, decode_character(character));
  return out;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code_point;
    const auto taken =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (taken <= 0) return false;
    at += static_cast<size_t>(taken);
  }
  return true;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(static_cast<unsigned char>(text[at]));
    out.push_back(text.substr(at, length));
    at += length;
  }
  return out;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

size_t character_offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size() && index > 0; --index) {
    at += sequence_length(static_cast<unsigned char>(text[at]));
  }
  return at;
}

int32_t decode_character(std::string_view character) {
  utf8proc_int32_t code_point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code_point);
  return code_point;
}

void append_utf8(std::string& out, uint32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool is_printable(int32_t c) {
  if (c == ' ') return true;
  const auto category = utf8proc_category(c);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides) {
  const auto goes = [&](std::string_view character) {
    return chars ? chars->find(character) != std::string_view::npos
                 : is_space(decode_character(character));
  };
  while ((sides & kLeft) != 0 && !text.empty()) {
    const size_t length = sequence_length(static_cast<unsigned char>(text[0]));
    if (!goes(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while ((sides & kRight) != 0 && !text.empty()) {
    size_t start = text.size() - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
    if (!goes(text.substr(start))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

size_t word_end(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = sequence_length(static_cast<unsigned char>(text[at]));
    if (is_space(decode_character(text.substr(at, length)))) break;
    at += length;
  }
  return at;
}

namespace {

std::vector<std::string> split_on_space(std::string_view text, int64_t max, bool from_right) {
  const Sides near = from_right ? kRight : kLeft;
  std::vector<std::string> parts;
  text = strip(text, std::nullopt, near);
  while (!text.empty()) {
    if (max >= 0 && static_cast<int64_t>(parts.size()) == max) {
      parts.emplace_back(text);
      break;
    }
    const auto all = [&] {  // bytes of the word at the near end
      size_t size = 0;
      while (size < text.size()) {
        size_t length;
        std::string_view character;
        if (from_right) {
          size_t start = text.size() - size - 1;
          while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
          length = text.size() - size - start;
          character = text.substr(start, length);
        } else {
          length = sequence_length(static_cast<unsigned char>(text[size]));
          character = text.substr(size, length);
        }
        if (is_space(decode_character(character))) break;
        size += length;
      }
      return size;
    }();
    parts.emplace_back(from_right ? text.substr(text.size() - all) : text.substr(0, all));
    from_right ? text.remove_suffix(all) : text.remove_prefix(all);
    text = strip(text, std::nullopt, near);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t max, bool from_right) {
  if (!separator) return split_on_space(text, max, from_right);
  std::vector<std::string> parts;
  while (max < 0 || static_cast<int64_t>(parts.size()) < max) {
    const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos) break;
    const size_t after = at + separator->size();
    parts.emplace_back(from_right ? text.substr(after) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(after);
  }
  parts.emplace_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = sequence_length(static_cast<unsigned char>(text[at]));
    if (is_line_end(decode_character(text.substr(at, length)))) {
      if (text.substr(at, 2) == "\r\n") length = 2;
      lines.emplace_back(text.substr(start, (keep_ends ? at + length : at) - start));
      start = at + length;
    }
    at += length;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return count_characters(text) + 1;
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

size_t replaced_size(std::string_view text, std::string_view from, std::string_view to,
                     int64_t max) {
  size_t count = count_of(text, from);
  if (max >= 0) count = std::min(count, static_cast<size_t>(max));
  return text.size() + count * to.size() - count * from.size();
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t max) {
  std::string out;
  out.reserve(replaced_size(text, from, to, max));
  size_t at = 0;
  for (int64_t done = 0; max < 0 || done < max; ++done) {
    const size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
    if (from.empty()) {  // between all characters, and at both ends
      if (at == text.size()) return out;
      const size_t length = sequence_length(static_cast<unsigned char>(text[at]));
      out.append(text.substr(at, length));
      at += length;
    }
  }
  return out.append(text.substr(at));
}

std::string upper(std::string_view text) {
  return mapped(text, [](std::string& out, int32_t c) { append_upper(out, c, false); });
}

std::string lower(std::string_view text) { return mapped(text, append_lower); }

std::string capitalize(std::string_view text) {
  bool first = true;
  return mapped(text, [&](std::string& out, int32_t c) {
    first ? append_upper(out, c, true) : append_lower(out, c);
    first = false;
  });
}

std::string title(std::string_view text) {
  bool in_word = false;
  return mapped(text, [&](std::string& out, int32_t c) {
    in_word ? append_lower(out, c) : append_upper(out, c, true);
    in_word = is_cased(c);
  });
}

std::string swap_case(std::string_view text) {
  return mapped(text, [](std::string& out, int32_t c) {
    utf8proc_category(c) == UTF8PROC_CATEGORY_LU ? append_lower(out, c)
                                                 : append_upper(out, c, false);
  });
}

namespace {

bool is_in(int32_t c, CharacterClass what) {
  const auto category = utf8proc_category(c);
  const bool alpha = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  const bool decimal = category == UTF8PROC_CATEGORY_ND;
  const bool numeric =
      decimal || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
  const bool superscript = c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0x2070 && c <= 0x2089);
  switch (what) {
    case CharacterClass::kAlpha:
      return alpha;
    case CharacterClass::kDecimal:
      return decimal;
    case CharacterClass::kDigit:
      return decimal || superscript;
    case CharacterClass::kNumeric:
      return numeric;
    case CharacterClass::kAlnum:
      return alpha || numeric;
    case CharacterClass::kSpace:
      return is_space(c);
    case CharacterClass::kLower:
      return category == UTF8PROC_CATEGORY_LL;
    case CharacterClass::kUpper:
      return category == UTF8PROC_CATEGORY_LU;
  }
  return false;
}

}  // namespace

bool is_title(std::string_view text) {
  bool any = false;
  bool in_word = false;
  for (std::string_view character : characters(text)) {
    const auto category = utf8proc_category(decode_character(character));
    const bool capital = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
    const bool small = category == UTF8PROC_CATEGORY_LL;
    if ((capital && in_word) || (small && !in_word)) return false;
    in_word = capital || small;
    any = any || in_word;
  }
  return any;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

bool is_printable(std::string_view text) {
  for (std::string_view character : characters(text)) {
    if (!is_printable(decode_character(character))) return false;
  }
  return true;
}

bool is_identifier(std::string_view text) {
  bool first = true;
  for (std::string_view character : characters(text)) {
    const int32_t c = decode_character(character);
    const auto category = utf8proc_category(c);
    const bool starts =
        c == '_' || is_in(c, CharacterClass::kAlpha) || category == UTF8PROC_CATEGORY_NL;
    const bool continues = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                           category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_PC;
    if (!starts && (first || !continues)) return false;
    first = false;
  }
  return !first;
}

bool all_are(std::string_view text, CharacterClass what) {
  const bool of_case = what == CharacterClass::kLower || what == CharacterClass::kUpper;
  bool any = false;
  for (std::string_view character : characters(text)) {
    const int32_t c = decode_character(character);
    if (of_case && !is_cased(c)) continue;  // what has no case does not count
    if (!is_in(c, what)) return false;
    any = true;
  }
  return any;
}

}  // namespace orthrus::jinja
