#include "server/api_stream.h"

#include "server/api_json.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

Json AnswerHead::json(const char* object) const {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", model},
          {"system_fingerprint", fingerprint}};
}

void PendingStep::add(const AnswerStep& step) {
  token_ids.insert(token_ids.end(), step.token_ids.begin(), step.token_ids.end());
  logprobs.insert(logprobs.end(), step.logprobs.begin(), step.logprobs.end());
  if (step.cycle_tokens > 0) cycles.push_back(step.cycle_tokens);
  forward_passes += step.forward_passes;
}

Json PendingStep::json() const { return {{"cycles", cycles}, {"forward_passes", forward_passes}}; }

static std::string sse_data(const std::string& text) { return "data: " + text + "\n\n"; }

std::string sse_event(const Json& data) { return sse_data(dump_json_line(data)); }

std::string sse_error(const ApiError& error) { return sse_data(error_body(error)) + kSseDone; }

const char* finish_reason_name(FinishReason reason, bool has_calls) {
  if (reason != FinishReason::kStop) return "length";  // cut off, by whatever
  return has_calls ? "tool_calls" : "stop";
}

}  // namespace orthrus
