#include "text/utf8.h"

namespace orthrus {
namespace {

/// The allowed range of the second byte and the number of bytes, by the first byte
/// (The Unicode Standard, table 3-7).
struct LeadByte {
  uint32_t length;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

LeadByte lead_byte(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2 || byte > 0xF4) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4};
}

constexpr char32_t kReplacement = 0xFFFD;

}  // namespace

Utf8Char utf8_at(std::string_view text, size_t position) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[position + i]); };
  LeadByte lead = lead_byte(byte(0));
  if (lead.length == 0) return {Utf8Char::Kind::kInvalid, 1};
  if (lead.length == 1) return {Utf8Char::Kind::kValid, 1, byte(0)};
  // 5, 4 or 3 payload bits in the first byte of 2, 3 or 4.
  char32_t codepoint = byte(0) & (0x7Fu >> lead.length);
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (position + i == text.size()) return {Utf8Char::Kind::kIncomplete, i};
    uint8_t low = i == 1 ? lead.low : 0x80;
    uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Char::Kind::kInvalid, i};
    codepoint = codepoint << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8Char::Kind::kValid, lead.length, codepoint};
}

void append_utf8(std::string& out, char32_t codepoint) {
  auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (codepoint < 0x80) {
    put(codepoint);
  } else if (codepoint < 0x800) {
    put(0xC0 | codepoint >> 6);
    put(0x80 | (codepoint & 0x3F));
  } else if (codepoint < 0x10000) {
    put(0xE0 | codepoint >> 12);
    put(0x80 | (codepoint >> 6 & 0x3F));
    put(0x80 | (codepoint & 0x3F));
  } else {
    put(0xF0 | codepoint >> 18);
    put(0x80 | (codepoint >> 12 & 0x3F));
    put(0x80 | (codepoint >> 6 & 0x3F));
    put(0x80 | (codepoint & 0x3F));
  }
}

void drain_utf8(std::string& pending, bool last, std::string& out) {
  size_t position = 0;
  while (position < pending.size()) {
    Utf8Char character = utf8_at(pending, position);
    if (character.kind == Utf8Char::Kind::kIncomplete && !last) break;
    if (character.kind == Utf8Char::Kind::kValid) {
      out.append(pending, position, character.length);
    } else {
      append_utf8(out, kReplacement);
    }
    position += character.length;
  }
  pending.erase(0, position);
}

}  // namespace orthrus
