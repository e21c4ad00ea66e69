#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orthrus {

/// What stands at a position of a byte string, by the Unicode standard's table of well-formed
/// UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF).
struct Utf8Char {
  enum class Kind {
    kValid,      ///< a whole character
    kInvalid,    ///< a maximal subpart: what one U+FFFD replaces
    kIncomplete  ///< the text ends inside what may still become a character
  };
  Kind kind = Kind::kValid;
  uint32_t length = 0;     ///< bytes, at least 1
  char32_t codepoint = 0;  ///< only where valid
};

/// The character at `position`, which must be inside `text`.
Utf8Char utf8_at(std::string_view text, size_t position);

/// Appends a valid code point.
void append_utf8(std::string& out, char32_t codepoint);

/// Moves what is complete in `pending` to `out`, with U+FFFD for every invalid subpart as Python's
/// errors="replace" does; an unfinished character at the end stays. With `last` it is replaced too.
void drain_utf8(std::string& pending, bool last, std::string& out);

}  // namespace orthrus
