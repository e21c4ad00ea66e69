#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/api_logprobs.h"
#include "server/api_request.h"
#include "server/api_stream.h"
#include "server/api_usage.h"
#include "text/tokenizer.h"

namespace orthrus {

/// A prompt of a completion in tokens.
struct CompletionPrompt {
  std::vector<int32_t> ids;
  size_t hidden = 0;  ///< tokens at the front that the tokenizer added: not echoed
};

/// Encodes a text (with the tokens that the tokenizer puts before one) or takes the ids as they
/// are.
CompletionPrompt completion_prompt(const CompletionRequest::Prompt& prompt,
                                   const Tokenizer& tokenizer);

/// The text that "echo" puts before an answer: the tokens' own, so that offsets are right.
std::string echo_text(const CompletionPrompt& prompt, const Tokenizer& tokenizer);

/// The body of a text_completion. Choice p * n + c is choice c of prompt p; results in that order.
nlohmann::ordered_json completion_answer(const AnswerHead& head, const CompletionRequest& request,
                                         std::span<const CompletionPrompt> prompts,
                                         const Tokenizer& tokenizer,
                                         std::span<const GenerateResult> results);

/// A streamed completion. The request, the prompts and the tokenizer must outlive it.
class CompletionStream : public AnswerStream {
 public:
  CompletionStream(AnswerHead head, const CompletionRequest& request,
                   std::span<const CompletionPrompt> prompts, const Tokenizer& tokenizer);

  /// The prompts, where they are echoed.
  std::string begin() override;
  std::string step(int64_t choice, const AnswerStep& step) override;
  std::string done(int64_t choice, const GenerateResult& result) override;
  std::string end() override;

 private:
  struct Choice {
    CompletionLogprobs logprobs;
    PendingStep pending;
  };

  nlohmann::ordered_json chunk(int64_t choice, const std::string& text) const;
  void take_pending(Choice& state, nlohmann::ordered_json& body);

  AnswerHead head_;
  const CompletionRequest& request_;
  std::span<const CompletionPrompt> prompts_;
  const Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  Usage usage_;
};

}  // namespace orthrus
