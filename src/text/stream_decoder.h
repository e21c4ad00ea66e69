#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace orthrus {

/// Turns a stream of tokens into text that is valid UTF-8 at every moment: bytes of an unfinished
/// character wait for the rest, invalid ones become U+FFFD (one for each maximal subpart, as
/// Python's errors="replace"). One per answer; not thread-safe. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  /// The text that is complete after this token (may be empty). Ids without a token (a model's
  /// vocabulary is often padded beyond the tokenizer's) have no text.
  std::string push(int32_t token);
  /// What is left at the end; an unfinished or invalid sequence becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string pending_;  // an unfinished character: at most 3 bytes between calls
};

}  // namespace orthrus
