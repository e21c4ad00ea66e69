#include "text/tokenizer_vocabulary.h"

#include <array>

#include "base/error.h"
#include "text/utf8.h"

namespace orthrus {
namespace {

/// Printable characters of Latin-1 stand for themselves, the other 68 bytes for U+0100 and on.
constexpr bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteAlphabet {
  std::array<int16_t, 0x144> byte{};  // by code point; -1: not in the alphabet
};

constexpr ByteAlphabet make_alphabet() {
  ByteAlphabet alphabet;
  alphabet.byte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    char32_t spelling = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.byte[spelling] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr ByteAlphabet kAlphabet = make_alphabet();

}  // namespace

bool append_spelled_bytes(std::string& out, std::string_view spelling) {
  size_t before = out.size();
  for (size_t position = 0; position < spelling.size();) {
    Utf8Char character = utf8_at(spelling, position);
    int byte = -1;
    if (character.kind == Utf8Char::Kind::kValid && character.codepoint < kAlphabet.byte.size()) {
      byte = kAlphabet.byte[character.codepoint];
    }
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(static_cast<char>(byte));
    position += character.length;
  }
  return true;
}

Vocabulary::Vocabulary(size_t ids, size_t bytes) : tokens_(ids) {
  storage_.reserve(bytes);
  by_text_.reserve(ids);
}

std::string_view Vocabulary::store(std::string_view bytes) {
  ORTHRUS_CHECK(storage_.size() + bytes.size() <= storage_.capacity());
  size_t begin = storage_.size();
  storage_.insert(storage_.end(), bytes.begin(), bytes.end());
  return {storage_.data() + begin, bytes.size()};
}

bool Vocabulary::add_spelled(std::string_view spelling, int32_t id) {
  Token& token = tokens_[static_cast<size_t>(id)];
  if (token.present) return false;
  token.present = true;
  std::string bytes;
  bool spelled = append_spelled_bytes(bytes, spelling);
  token.bytes = store(spelled ? bytes : spelling);
  if (spelled) by_text_[token.bytes] = id;
  return true;
}

bool Vocabulary::add(std::string_view text, std::string_view bytes, int32_t id) {
  Token& token = tokens_[static_cast<size_t>(id)];
  if (token.present) return false;
  const std::string_view stored = store(text);
  token = {bytes == text ? stored : store(bytes), true, false};
  by_text_[stored] = id;
  return true;
}

void Vocabulary::add_literal(std::string_view text, std::string_view bytes, int32_t id,
                             bool special) {
  const std::string_view stored = store(text);
  tokens_[static_cast<size_t>(id)] = {bytes == text ? stored : store(bytes), true, special};
  literals_[stored] = id;
}

bool Vocabulary::has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < tokens_.size() &&
         tokens_[static_cast<size_t>(id)].present;
}

int32_t Vocabulary::find(std::string_view text) const {
  auto found = by_text_.find(text);
  return found == by_text_.end() ? -1 : found->second;
}

int32_t Vocabulary::find_any(std::string_view text) const {
  auto found = literals_.find(text);
  return found == literals_.end() ? find(text) : found->second;
}

}  // namespace orthrus
