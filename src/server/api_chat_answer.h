#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/api_answer_parser.h"
#include "server/api_prompt.h"
#include "server/api_stream.h"
#include "server/api_usage.h"
#include "text/tokenizer.h"

namespace orthrus {

/// The body of a chat.completion; results in the order of the choices.
nlohmann::ordered_json chat_answer(const AnswerHead& head, const ChatRequest& request,
                                   Thought thought, const Tokenizer& tokenizer,
                                   std::span<const GenerateResult> results);

/// The events of a streamed chat. Each call returns text to send, which may be empty. The request
/// and the tokenizer must outlive it; not thread-safe.
class ChatStream {
 public:
  ChatStream(AnswerHead head, const ChatRequest& request, Thought thought,
             const Tokenizer& tokenizer);

  /// The role of every choice, to be sent first.
  std::string begin();
  /// At most one chunk.
  std::string step(int64_t choice, const AnswerStep& step);
  /// The end of a choice: what was held back, the reason, the timings.
  std::string done(int64_t choice, const GenerateResult& result);
  /// After the last done(): the usage where asked for, and [DONE].
  std::string end();

 private:
  struct Choice {
    AnswerParser parser;
    PendingStep pending;
  };

  nlohmann::ordered_json chunk(int64_t choice, nlohmann::ordered_json delta) const;
  std::string flush(int64_t choice, const std::vector<AnswerEvent>& events);

  AnswerHead head_;
  const ChatRequest& request_;
  const Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  Usage usage_;
};

}  // namespace orthrus
