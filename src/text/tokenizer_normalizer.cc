#include "text/tokenizer_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "text/utf8.h"

namespace orthrus {
namespace {

int combining_class(utf8proc_int32_t codepoint) {
  return utf8proc_get_property(codepoint)->combining_class;
}

/// Puts runs of combining marks in canonical order (UAX 15). utf8proc does it by insertion, which
/// takes quadratic time on long runs.
void sort_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = std::find_if(begin, text.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  // No character has a canonical decomposition of more than 4 code points.
  utf8proc_int32_t parts[8];
  int boundary = 0;
  for (size_t position = 0; position < text.size();) {
    Utf8Char character = utf8_at(text, position);
    ORTHRUS_CHECK(character.kind == Utf8Char::Kind::kValid);
    utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.codepoint), parts,
                                std::size(parts), UTF8PROC_DECOMPOSE, &boundary);
    ORTHRUS_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(std::size(parts)));
    out.insert(out.end(), parts, parts + count);
    position += character.length;
  }
  return out;
}

}  // namespace

bool is_plainly_nfc(std::string_view text) {
  // U+0300 is CC 80: no lead byte from CC on.
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0xCC; });
}

std::string normalize_nfc(std::string_view text) {
  std::vector<utf8proc_int32_t> codepoints = decompose(text);
  sort_marks(codepoints);
  utf8proc_ssize_t length =
      utf8proc_normalize_utf32(codepoints.data(), static_cast<utf8proc_ssize_t>(codepoints.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  ORTHRUS_CHECK(length >= 0);
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(out, static_cast<char32_t>(codepoints[static_cast<size_t>(i)]));
  }
  return out;
}

}  // namespace orthrus
