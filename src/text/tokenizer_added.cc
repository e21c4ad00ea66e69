#include "text/tokenizer_added.h"

#include <algorithm>

#include "base/error.h"
#include "formats/printable.h"
#include "text/utf8.h"

namespace orthrus {
namespace {

uint64_t edge(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

/// Unicode property White_Space.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_space_at(std::string_view text, size_t position, uint32_t& length) {
  Utf8Char character = utf8_at(text, position);
  length = character.length;
  return character.kind == Utf8Char::Kind::kValid && is_space(character.codepoint);
}

/// Where the white space that ends at `end` begins, not before `limit`.
size_t space_begin(std::string_view text, size_t limit, size_t end) {
  while (end > limit) {
    size_t begin = end - 1;
    while (begin > limit && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    uint32_t length = 0;
    if (!is_space_at(text, begin, length) || begin + length != end) break;
    end = begin;
  }
  return end;
}

/// Where the white space that begins at `begin` ends.
size_t space_end(std::string_view text, size_t begin) {
  uint32_t length = 0;
  while (begin < text.size() && is_space_at(text, begin, length)) begin += length;
  return begin;
}

}  // namespace

int32_t AddedTokenMatcher::child(int32_t node, char byte) const {
  auto found = edges_.find(edge(node, byte));
  return found == edges_.end() ? -1 : found->second;
}

void AddedTokenMatcher::add(const AddedToken& token, const std::string& where) {
  ORTHRUS_CHECK(!token.content.empty());
  if (token.content.size() > kMaxContentBytes) {
    fail("{}: added token {} has {} bytes, expected at most {}", where, printable(token.content),
         token.content.size(), kMaxContentBytes);
  }
  int32_t node = 0;
  starts_[static_cast<unsigned char>(token.content[0])] = true;
  for (char byte : token.content) {
    auto [position, inserted] =
        edges_.try_emplace(edge(node, byte), static_cast<int32_t>(ends_.size()));
    if (inserted) ends_.emplace_back();
    node = position->second;
  }
  ends_[static_cast<size_t>(node)] = {token.id, token.strip_left, token.strip_right};
}

size_t AddedTokenMatcher::longest_at(std::string_view text, size_t position, Flags& found) const {
  size_t longest = 0;
  if (!starts_[static_cast<unsigned char>(text[position])]) return longest;
  int32_t node = 0;
  for (size_t i = position; i < text.size(); ++i) {
    node = child(node, text[i]);
    if (node < 0) break;
    if (ends_[static_cast<size_t>(node)].id >= 0) {
      longest = i + 1 - position;
      found = ends_[static_cast<size_t>(node)];
    }
  }
  return longest;
}

std::vector<AddedTokenMatcher::Section> AddedTokenMatcher::split(std::string_view text) const {
  std::vector<Section> sections;
  size_t done = 0;  // all before is in a section
  for (size_t position = 0; position < text.size();) {
    Flags found;
    size_t length = longest_at(text, position, found);
    if (length == 0) {
      ++position;
      continue;
    }
    size_t begin = std::max(position, done);
    size_t end = std::max(position + length, done);
    position += length;
    if (found.strip_left) begin = space_begin(text, done, begin);
    if (found.strip_right) end = space_end(text, end);
    if (begin > done) sections.push_back({-1, text.substr(done, begin - done)});
    sections.push_back({found.id, text.substr(begin, end - begin)});
    done = end;
  }
  if (done < text.size()) sections.push_back({-1, text.substr(done)});
  return sections;
}

}  // namespace orthrus
