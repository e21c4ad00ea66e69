#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_matcher.h"

namespace orthrus::fuzz {

/// Feeds `text` to a grammar by single bytes, with a rollback now and then; masks must say what
/// accept() does.
inline void match(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  static const auto tokens = [] {
    static std::array<char, 256> bytes;
    std::vector<std::string_view> list;
    for (size_t i = 0; i < 256; ++i) {
      bytes[i] = static_cast<char>(i);
      list.emplace_back(&bytes[i], 1);
    }
    list.insert(list.end(), {"", "\"}", "\",\"", "ab", "aba", "],", "\xc3\xa9\"", "}}", "\n  "});
    return std::make_shared<const TokenTrie>(list);
  }();
  constexpr size_t kMaxSteps = 128;
  GrammarMatcher matcher(grammar, tokens, std::array{256});
  for (const char c : text.substr(0, kMaxSteps)) {
    const auto mask = matcher.mask();
    const std::vector<uint64_t> copy(mask.begin(), mask.end());
    for (int32_t token = 257; token < tokens->vocab_size(); ++token) {
      const bool accepted = matcher.accept(token);
      ORTHRUS_CHECK(accepted == (copy[4] >> (token - 256) & 1));
      if (accepted) matcher.rollback(1);
    }
    const auto token = static_cast<unsigned char>(c);
    ORTHRUS_CHECK(matcher.accept(token) == (copy[token / 64] >> (token % 64) & 1));
  }
}

}  // namespace orthrus::fuzz
