#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace orthrus {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {}

std::string StreamDecoder::push(int32_t token) {
  std::string out;
  if (!tokenizer_.has_token(token) || (skip_special_ && tokenizer_.is_special(token))) return out;
  pending_ += tokenizer_.token_bytes(token);
  drain_utf8(pending_, false, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  drain_utf8(pending_, true, out);
  return out;
}

}  // namespace orthrus
