#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace orthrus {

/// Turns a stream of tokens into text that is valid UTF-8 at every moment: bytes of an unfinished
/// character wait for the rest. One per answer; not thread-safe. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  /// The text that is complete after this token (may be empty).
  std::string push(int32_t token);
  /// What is left at the end; an unfinished or invalid sequence becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string pending_;
};

}  // namespace orthrus
