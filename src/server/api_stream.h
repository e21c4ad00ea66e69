#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "orthrus/options.h"
#include "server/api_error.h"

namespace orthrus {

/// What all bodies of one answer begin with.
struct AnswerHead {
  std::string id;           ///< "chatcmpl-..." or "cmpl-...": the request's id
  int64_t created = 0;      ///< seconds since 1970
  std::string model;        ///< ApiContext::models.front()
  std::string fingerprint;  ///< of the program and the model: "system_fingerprint"

  nlohmann::ordered_json json(const char* object) const;
};

/// What one step of the engine added to a choice.
struct AnswerStep {
  std::string text;
  std::vector<int32_t> token_ids;       ///< where log probabilities are asked for
  std::vector<TokenLogprobs> logprobs;  ///< of token_ids
  int64_t cycle_tokens = 0;             ///< tokens that this step's cycle gave; 0: none (the end)
  int64_t forward_passes = 0;           ///< since the step before, those that gave no token too
};

/// Steps that did not make a chunk yet: their text is held back.
struct PendingStep {
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprobs> logprobs;
  std::vector<int64_t> cycles;
  int64_t forward_passes = 0;

  void add(const AnswerStep& step);
  /// {"cycles": [...], "forward_passes"}: the tokens of each cycle that the chunk's text is made of
  /// (most chunks are of one), and the passes that they took.
  nlohmann::ordered_json json() const;
};

/// The events of a streamed answer: begin(), steps and ends of the choices in any order, end().
/// Each call returns text to send, which may be empty. Not thread-safe.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  virtual std::string begin() = 0;
  /// At most one chunk.
  virtual std::string step(int64_t choice, const AnswerStep& step) = 0;
  /// The end of a choice: what was held back, the reason, the timings.
  virtual std::string done(int64_t choice, const GenerateResult& result) = 0;
  /// After the last done(): the usage where asked for, and [DONE].
  virtual std::string end() = 0;
};

/// An event of a stream (server-sent events): "data: JSON\n\n".
std::string sse_event(const nlohmann::ordered_json& data);
/// An error in the middle of a stream; the stream ends behind it.
std::string sse_error(const ApiError& error);
inline constexpr const char* kSseDone = "data: [DONE]\n\n";

/// "stop", "length" or "tool_calls".
const char* finish_reason_name(FinishReason reason, bool has_calls);

}  // namespace orthrus
