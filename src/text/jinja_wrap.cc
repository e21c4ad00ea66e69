#include <algorithm>

#include "base/error.h"
#include "text/jinja_layout.h"
#include "text/jinja_string.h"
#include "text/pretokenizer_regex.h"

namespace orthrus::jinja {

namespace {

/// Runs of space; dashes between words; words, which also end after a hyphen between letters and
/// before dashes that join another word.
constexpr const char* kHyphenated =
    R"([ \t\n\v\f\r]+)"
    R"(|(?<=[\w!"'&.,?])-{2,}(?=\w))"
    R"(|[^ \t\n\v\f\r]+?(?:)"
    R"(-(?:(?<=[^\d\W][^\d\W]-)|(?<=[^\d\W]-[^\d\W]-))(?=[^\d\W]-?[^\d\W]))"
    R"(|(?=[ \t\n\v\f\r]|\z))"
    R"(|(?<=[\w!"'&.,?])(?=-{2,}\w)))";
constexpr const char* kPlain = R"([ \t\n\v\f\r]+|[^ \t\n\v\f\r]+)";

struct Chunk {
  std::string_view text;
  int64_t size;  // characters
  bool blank;

  explicit Chunk(std::string_view chunk)
      : text(chunk),
        size(static_cast<int64_t>(count_characters(chunk))),
        blank(strip(chunk, std::nullopt, kLeft).empty()) {}
};

/// In reverse: the next one is the last.
std::vector<Chunk> chunks_of(std::string_view text, bool break_on_hyphens) {
  static const Regex hyphenated(kHyphenated, "wordwrap");
  static const Regex plain(kPlain, "wordwrap");
  RegexBudget budget(text.size());
  std::vector<Chunk> chunks;
  size_t at = 0;
  for (const ByteRange& range : (break_on_hyphens ? hyphenated : plain).matches(text, budget)) {
    if (range.begin > at) chunks.emplace_back(text.substr(at, range.begin - at));
    if (range.end > range.begin) {
      chunks.emplace_back(text.substr(range.begin, range.end - range.begin));
    }
    at = range.end;
  }
  if (at < text.size()) chunks.emplace_back(text.substr(at));
  std::reverse(chunks.begin(), chunks.end());
  return chunks;
}

/// How many characters of a word too long for any line go onto one with `space` left: up to its
/// last hyphen there, but for hyphens that it begins with.
int64_t broken_at(std::string_view word, int64_t space, bool break_on_hyphens) {
  if (!break_on_hyphens) return space;
  const std::string_view fits = word.substr(0, character_offset(word, static_cast<size_t>(space)));
  const size_t hyphen = fits.rfind('-');
  const bool breaks =
      hyphen != std::string_view::npos && hyphen > 0 && fits.find_first_not_of('-') < hyphen;
  return breaks ? static_cast<int64_t>(count_characters(fits.substr(0, hyphen))) + 1 : space;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view paragraph, const WrapStyle& style) {
  std::vector<Chunk> left = chunks_of(paragraph, style.break_on_hyphens);
  if (style.width <= 0) fail("wordwrap: a width of {}, expected at least 1", style.width);
  std::vector<std::string> lines;
  while (!left.empty()) {
    std::vector<Chunk> line;
    int64_t size = 0;
    if (left.back().blank && !lines.empty()) left.pop_back();
    while (!left.empty() && size + left.back().size <= style.width) {
      size += left.back().size;
      line.push_back(left.back());
      left.pop_back();
    }
    if (!left.empty() && left.back().size > style.width) {
      const std::string_view word = left.back().text;
      if (style.break_long_words) {
        const int64_t taken = broken_at(word, style.width - size, style.break_on_hyphens);
        const size_t offset = character_offset(word, static_cast<size_t>(taken));
        line.emplace_back(word.substr(0, offset));
        left.back() = Chunk(word.substr(offset));
      } else if (line.empty()) {
        line.push_back(left.back());
        left.pop_back();
      }
    }
    if (!line.empty() && line.back().blank) line.pop_back();
    if (line.empty()) continue;
    lines.emplace_back();
    for (const Chunk& chunk : line) lines.back() += chunk.text;
  }
  return lines;
}

}  // namespace orthrus::jinja
