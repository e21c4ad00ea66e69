#pragma once

#include <cstdint>
#include <span>

namespace orthrus {

/// Decides which tokens an answer may consist of, for someone who knows texts (a grammar). Both
/// views are masked by it, so that drafts keep being accepted.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  /// Bit t % 64 of word t / 64: whether token t may follow `answer`, which are tokens behind the
  /// prompt. Tokens beyond the words may not; without words all may. Valid until the next call. A
  /// pure function of `answer`; called for answers that mostly grow, but may be shorter than the
  /// last, or end otherwise.
  virtual std::span<const uint64_t> allowed(std::span<const int32_t> answer) = 0;
};

}  // namespace orthrus
