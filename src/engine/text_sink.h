#pragma once

#include <string>
#include <vector>

#include "decode/decoder.h"
#include "orthrus/language_model.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace orthrus {

/// Tokens in, text out: decodes without breaking characters, holds back what may become a stop
/// string, and stops the generation at one that begins behind the first `free_tokens` tokens. One
/// per answer.
class TextSink : public TokenSink {
 public:
  /// streamer may be null. The tokenizer and the streamer must outlive this.
  TextSink(const Tokenizer& tokenizer, std::vector<std::string> stops, int64_t free_tokens,
           Streamer* streamer)
      : decoder_(tokenizer),
        matcher_(std::move(stops)),
        free_tokens_(free_tokens),
        streamer_(streamer) {}

  bool on_token(int32_t token) override {
    if (free_tokens_ > 0) {
      --free_tokens_;
      emit(decoder_.push(token));
      return true;
    }
    emit(matcher_.push(decoder_.push(token)));
    return !matcher_.stopped();
  }

  /// Releases what was held back. Call once, after the last token.
  void finish() {
    emit(matcher_.push(decoder_.finish()));
    emit(matcher_.finish());
    if (streamer_) streamer_->on_end();
  }

  const std::string& text() const { return text_; }

 private:
  void emit(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (streamer_) streamer_->on_text(piece);
  }

  StreamDecoder decoder_;
  StopMatcher matcher_;
  int64_t free_tokens_;  // left
  Streamer* streamer_;
  std::string text_;
};

}  // namespace orthrus
