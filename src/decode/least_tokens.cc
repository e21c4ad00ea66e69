#include "decode/least_tokens.h"

namespace orthrus {

LeastTokens::LeastTokens(int64_t least, std::span<const int32_t> end_tokens, int64_t vocab)
    : least_(least), words_(static_cast<size_t>((vocab + 63) / 64), ~uint64_t{0}) {
  for (const int32_t token : end_tokens) {
    if (token < 0 || token >= vocab) continue;
    words_[static_cast<size_t>(token / 64)] &= ~(uint64_t{1} << (token % 64));
  }
}

}  // namespace orthrus
