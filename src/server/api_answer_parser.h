#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api_prompt.h"

namespace orthrus {

/// A piece of an answer, told apart.
struct AnswerEvent {
  enum class Kind {
    kReasoning,  ///< text of the thought
    kContent,    ///< text for the reader
    kCallBegin,  ///< a tool call: index, id and name
    kArguments,  ///< the next bytes of a call's arguments, as the model wrote them
    kCallEnd
  };
  Kind kind = Kind::kContent;
  std::string text;  ///< of the first two and of arguments
  size_t call = 0;   ///< index of the call in the answer
  std::string id;    ///< of kCallBegin
  std::string name;  ///< of kCallBegin

  bool operator==(const AnswerEvent&) const = default;
};

/// Tells thoughts and tool calls (Qwen's and Hermes's form) from the text of an answer that arrives
/// in pieces. What it says does not depend on how the text is cut; text that may still become a tag
/// is held back. White space around thoughts and calls is dropped. What begins like a call and is
/// none comes through as content; once a call's arguments have begun they are handed on as they
/// are, like OpenAI's possibly not valid JSON. One per answer; not thread-safe.
///
///   <think>THOUGHT</think> CONTENT <tool_call>{"name": "f", "arguments": {...}}</tool_call> ...
class AnswerParser {
 public:
  /// Calls get the ids call_prefix + "0", "1", ...; without `tools` there are none. `calls_only`:
  /// the answer cannot hold anything else, so that the beginning of a call that was cut off is
  /// nothing.
  AnswerParser(Thought thought, bool tools, std::string call_prefix, bool calls_only = false);

  /// Takes valid UTF-8 and appends what is certain now.
  void feed(std::string_view text, std::vector<AnswerEvent>& events);
  /// The end of the answer: what was held back.
  void finish(std::vector<AnswerEvent>& events);

  size_t calls() const { return calls_; }
  /// Bytes of the answer up to the end of the thought, its tags included; 0 without a thought.
  size_t thought_bytes() const { return thought_bytes_; }

 private:
  enum class State { kStart, kThought, kContent, kCallHead, kArguments, kCallTail };

  // Each takes what it can of pending_; false where it needs more text.
  bool step(std::vector<AnswerEvent>& events);
  bool start();
  bool thought(std::vector<AnswerEvent>& events);
  bool content(std::vector<AnswerEvent>& events);
  bool call_head(std::vector<AnswerEvent>& events);
  bool arguments(std::vector<AnswerEvent>& events);
  bool call_tail();

  void emit(AnswerEvent::Kind kind, std::string_view text, std::vector<AnswerEvent>& events);
  void begin_call(std::string name, std::vector<AnswerEvent>& events);
  void take(size_t bytes) { pending_.erase(0, bytes); }

  State state_;
  bool tools_;
  bool calls_only_;
  std::string call_prefix_;
  std::string pending_;       // not yet told apart; bounded, but for a piece just fed
  std::string call_opening_;  // what comes back as content where it was no call
  bool skip_space_ = false;   // behind a tag
  size_t fed_ = 0;
  size_t thought_bytes_ = 0;
  size_t calls_ = 0;
  // Within the arguments:
  size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool open_object_ = false;  // the call's own closing brace is still to come
};

}  // namespace orthrus
