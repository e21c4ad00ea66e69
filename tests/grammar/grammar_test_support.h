#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_matcher.h"

namespace orthrus {

/// The end token of byte_tokens().
inline constexpr int32_t kByteEnd = 256;

/// A vocabulary of the 256 bytes and an end token.
inline std::shared_ptr<const TokenTrie> byte_tokens() {
  static const auto tokens = [] {
    static std::array<char, 256> bytes;
    std::vector<std::string_view> list;
    for (size_t i = 0; i < 256; ++i) {
      bytes[i] = static_cast<char>(i);
      list.emplace_back(&bytes[i], 1);
    }
    list.emplace_back();
    return std::make_shared<const TokenTrie>(list);
  }();
  return tokens;
}

inline bool allowed(std::span<const uint64_t> mask, int32_t token) {
  return mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
}

/// Whether `text` is of the language, byte by byte; each step asks the mask too.
inline bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar, byte_tokens(), std::array{kByteEnd});
  for (const char c : text) {
    const int32_t token = static_cast<unsigned char>(c);
    const bool in_mask = allowed(matcher.mask(), token);
    const bool accepted = matcher.accept(token);
    if (in_mask != accepted) throw std::logic_error("mask and accept() differ");
    if (!accepted) return false;
  }
  if (allowed(matcher.mask(), kByteEnd) != matcher.may_end()) {
    throw std::logic_error("mask and may_end() differ");
  }
  return matcher.may_end();
}

/// The message of the Error(kUsage) that `call` throws; "" where it throws none.
template <typename Call>
std::string usage_error(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kUsage ? error.what() : "not kUsage";
  }
  return "";
}

}  // namespace orthrus
