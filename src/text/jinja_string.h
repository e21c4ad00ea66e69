#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Python's string methods on UTF-8. Every text here is valid UTF-8.
namespace orthrus::jinja {

bool is_valid_utf8(std::string_view text);
/// The code points, each as its bytes.
std::vector<std::string_view> characters(std::string_view text);
size_t count_characters(std::string_view text);
/// Bytes before the character `index`; the size of the text where it has no more than that.
size_t character_offset(std::string_view text, size_t index);
int32_t decode_character(std::string_view character);
void append_utf8(std::string& out, uint32_t code_point);

bool is_space(int32_t code_point);
/// What repr() shows as it is.
bool is_printable(int32_t code_point);
enum Sides { kLeft = 1, kRight = 2, kBoth = 3 };
/// Without the leading and trailing characters that are in `chars` (white space where absent).
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides);
/// The bytes before the first white space.
size_t word_end(std::string_view text);
/// Parts between `separator`, or between runs of white space where absent; at most `max` cuts
/// where max >= 0, taken from the right with from_right.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t max, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
/// At most `max` replacements where max >= 0. The size of the result is in replaced_size.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t max);
size_t replaced_size(std::string_view text, std::string_view from, std::string_view to,
                     int64_t max);
/// Occurrences that do not overlap; one more than the characters for an empty `part`.
size_t count_of(std::string_view text, std::string_view part);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// str.title(): a word begins after whatever has no case.
std::string title(std::string_view text);
std::string swap_case(std::string_view text);

enum class CharacterClass { kAlpha, kDigit, kDecimal, kNumeric, kAlnum, kSpace, kLower, kUpper };
/// str.isalpha() and its like.
bool all_are(std::string_view text, CharacterClass what);

/// str.istitle() and its like, which also hold for other texts than all_are's.
bool is_title(std::string_view text);
bool is_ascii(std::string_view text);
bool is_printable(std::string_view text);
bool is_identifier(std::string_view text);

/// Python's repr() of a string.
std::string quoted(std::string_view text);
/// With what is not ASCII as escapes, as ascii() makes of a repr().
std::string ascii_only(std::string_view repr);
/// The inside of a string literal with its escapes resolved; absent where one is malformed.
std::optional<std::string> unescape(std::string_view text);

}  // namespace orthrus::jinja
