#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

namespace orthrus::train {

/// FNV-1a, 64 bits, over lists of tokens: tells whether prompts or data are those of before.
class TokenHash {
 public:
  void add(std::span<const int32_t> tokens) {
    mix(tokens.size());
    for (const int32_t token : tokens) mix(static_cast<uint64_t>(token));
  }
  void mix(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3; }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace orthrus::train
