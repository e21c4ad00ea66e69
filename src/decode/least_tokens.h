#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/token_constraint.h"

namespace orthrus {

/// No end token among the first tokens of an answer.
class LeastTokens : public TokenConstraint {
 public:
  LeastTokens(int64_t least, std::span<const int32_t> end_tokens, int64_t vocab);

  std::span<const uint64_t> allowed(std::span<const int32_t> answer) override {
    return static_cast<int64_t>(answer.size()) < least_ ? std::span<const uint64_t>(words_)
                                                        : std::span<const uint64_t>();
  }

 private:
  const int64_t least_;
  std::vector<uint64_t> words_;  // all but the end tokens
};

}  // namespace orthrus
