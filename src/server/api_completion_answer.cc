#include "server/api_completion_answer.h"

#include "text/utf8.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

CompletionPrompt completion_prompt(const CompletionRequest::Prompt& prompt,
                                   const Tokenizer& tokenizer) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return {*ids, 0};
  const std::string& text = std::get<std::string>(prompt);
  CompletionPrompt result{tokenizer.encode(text, true), 0};
  result.hidden = result.ids.size() - tokenizer.encode(text).size();
  return result;
}

std::string echo_text(const CompletionPrompt& prompt, const Tokenizer& tokenizer) {
  std::string bytes, text;
  for (size_t i = prompt.hidden; i < prompt.ids.size(); ++i) {
    if (tokenizer.has_token(prompt.ids[i])) bytes += tokenizer.token_bytes(prompt.ids[i]);
  }
  drain_utf8(bytes, true, text);
  return text;
}

Json completion_answer(const AnswerHead& head, const CompletionRequest& request,
                       std::span<const CompletionPrompt> prompts, const Tokenizer& tokenizer,
                       std::span<const GenerateResult> results) {
  Json body = head.json("text_completion");
  Json& choices = body["choices"] = Json::array();
  Usage usage;
  const auto n = static_cast<size_t>(request.n);
  for (size_t i = 0; i < results.size(); ++i) {
    const GenerateResult& result = results[i];
    const CompletionPrompt& prompt = prompts[i / n];
    Json logprobs;
    if (request.wants_logprobs()) {
      CompletionLogprobs builder(tokenizer);
      if (request.echo) {
        append_completion_logprobs(
            logprobs, builder.prompt(prompt.ids, result.prompt_logprobs, prompt.hidden));
      }
      append_completion_logprobs(logprobs, builder.answer(result.token_ids, result.logprobs));
    }
    choices.push_back({{"index", i},
                       {"text", (request.echo ? echo_text(prompt, tokenizer) : "") + result.text},
                       {"logprobs", std::move(logprobs)},
                       {"finish_reason", finish_reason_name(result.finish_reason, false)}});
    usage.add(result, i % n == 0);
  }
  body["usage"] = usage.json();
  if (results.size() == 1) body["timings"] = timings_json(results.front());
  return body;
}

CompletionStream::CompletionStream(AnswerHead head, const CompletionRequest& request,
                                   std::span<const CompletionPrompt> prompts,
                                   const Tokenizer& tokenizer)
    : head_(std::move(head)), request_(request), prompts_(prompts), tokenizer_(tokenizer) {
  const size_t count = prompts.size() * static_cast<size_t>(request.n);
  for (size_t i = 0; i < count; ++i) choices_.push_back({CompletionLogprobs(tokenizer), {}});
}

Json CompletionStream::chunk(int64_t choice, const std::string& text) const {
  Json body = head_.json("text_completion");
  body["choices"] = {
      {{"index", choice}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}}};
  if (request_.include_usage) body["usage"] = nullptr;
  return body;
}

void CompletionStream::take_pending(Choice& state, Json& body) {
  if (request_.wants_logprobs() && !state.pending.token_ids.empty()) {
    body["choices"][0]["logprobs"] =
        state.logprobs.answer(state.pending.token_ids, state.pending.logprobs);
  }
  body["orthrus"] = state.pending.json();
  state.pending = {};
}

std::string CompletionStream::begin() {
  std::string out;
  if (!request_.echo) return out;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const CompletionPrompt& prompt = prompts_[i / static_cast<size_t>(request_.n)];
    out += sse_event(chunk(static_cast<int64_t>(i), echo_text(prompt, tokenizer_)));
  }
  return out;
}

std::string CompletionStream::step(int64_t choice, const AnswerStep& step) {
  Choice& state = choices_.at(static_cast<size_t>(choice));
  state.pending.add(step);
  if (step.text.empty()) return {};
  Json body = chunk(choice, step.text);
  take_pending(state, body);
  return sse_event(body);
}

std::string CompletionStream::done(int64_t choice, const GenerateResult& result) {
  Json body = chunk(choice, "");
  take_pending(choices_.at(static_cast<size_t>(choice)), body);
  body["choices"][0]["finish_reason"] = finish_reason_name(result.finish_reason, false);
  body["timings"] = timings_json(result);
  usage_.add(result, choice % request_.n == 0);
  return sse_event(body);
}

std::string CompletionStream::end() {
  std::string out;
  if (request_.include_usage) {
    Json body = head_.json("text_completion");
    body["choices"] = Json::array();
    body["usage"] = usage_.json();
    out = sse_event(body);
  }
  return out + kSseDone;
}

}  // namespace orthrus
