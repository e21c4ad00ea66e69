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

/// A streamed chat. The request and the tokenizer must outlive it.
class ChatStream : public AnswerStream {
 public:
  ChatStream(AnswerHead head, const ChatRequest& request, Thought thought,
             const Tokenizer& tokenizer);

  /// The role of every choice.
  std::string begin() override;
  std::string step(int64_t choice, const AnswerStep& step) override;
  std::string done(int64_t choice, const GenerateResult& result) override;
  std::string end() override;

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
