#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/api_request.h"
#include "server/api_stream.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace orthrus {

/// What the answers to one request look like: the engine's requests, and the texts made of what
/// becomes of them. One thread at a time.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  /// One for each choice; client and priority are set by the caller.
  virtual std::vector<EngineRequest> requests() const = 0;
  virtual const GenerationRequest& request() const = 0;

  /// Of a streamed answer.
  virtual AnswerStream& stream() = 0;
  /// A whole answer; results in the order of the choices.
  virtual std::string whole(std::span<const GenerateResult> results) = 0;
};

/// Reads the body of a request. ApiError for what cannot be served. `chat_template` and `tokenizer`
/// must outlive the format.
std::unique_ptr<AnswerFormat> make_chat_format(std::string_view body, const ApiContext& context,
                                               AnswerHead head, const ChatTemplate* chat_template,
                                               const Tokenizer& tokenizer, int64_t max_seq_len);
std::unique_ptr<AnswerFormat> make_completion_format(std::string_view body,
                                                     const ApiContext& context, AnswerHead head,
                                                     const Tokenizer& tokenizer,
                                                     int64_t max_seq_len);

}  // namespace orthrus
