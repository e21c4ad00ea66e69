#pragma once

#include <string>

#include "server/api_request.h"
#include "text/chat_template.h"

namespace orthrus {

inline constexpr const char* kThinkBegin = "<think>";
inline constexpr const char* kThinkEnd = "</think>";
inline constexpr const char* kToolCallBegin = "<tool_call>";
inline constexpr const char* kToolCallEnd = "</tool_call>";

/// Whether an answer has a thought.
enum class Thought : uint8_t {
  kNone,      ///< none: the model has no thoughts, or the prompt closed an empty one
  kMayBegin,  ///< if it begins with <think>
  kOpen       ///< the prompt ends within one
};

/// A rendered chat.
struct ChatPrompt {
  std::string text;
  Thought thought = Thought::kNone;
};

/// Renders the request's chat. ApiError 400 with the template's message where it refuses, and where
/// the message that shall go on is not found in what it writes.
ChatPrompt render_chat(const ChatRequest& request, const ChatTemplate& chat_template);

/// Options of one choice: choice_options(), and where a form is asked for, the thought that may
/// stand before it.
GenerateOptions chat_options(const ChatRequest& request, const ChatPrompt& prompt, int64_t choice);

/// ApiError 400 (context_length_exceeded) where a text of so many bytes is more than the context
/// holds even of the longest tokens: so that nobody waits for the tokens of something that large.
/// (Megabytes of what a tokenizer drops or composes are refused too, though they might fit.)
void check_prompt_bytes(size_t bytes, size_t max_token_bytes, int64_t max_seq_len);

/// ApiError 400 (context_length_exceeded) where a prompt of so many tokens leaves no room for an
/// answer.
void check_prompt_length(int64_t tokens, int64_t max_seq_len);

}  // namespace orthrus
