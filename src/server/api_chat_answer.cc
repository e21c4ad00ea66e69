#include "server/api_chat_answer.h"

#include <fmt/format.h>

#include "server/api_logprobs.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

using Kind = AnswerEvent::Kind;

// Calls of one answer have ids that follow from the request's.
AnswerParser make_parser(const AnswerHead& head, const ChatRequest& request, Thought thought,
                         int64_t choice) {
  const std::string request_part = head.id.substr(head.id.rfind('-') + 1);
  return {thought, request.tools, fmt::format("call_{}_{}_", request_part, choice),
          request.calls_only};
}

void append(Json& object, const char* name, const std::string& text) {
  if (!object.contains(name)) object[name] = "";
  object[name].get_ref<std::string&>() += text;
}

// The entry of a call, added where it is new; `with_index` as in deltas.
Json& call_entry(Json& target, size_t call, bool with_index) {
  Json& calls = target["tool_calls"];
  if (with_index) {
    for (Json& entry : calls) {
      if (entry["index"] == call) return entry;
    }
    calls.push_back(Json{{"index", call}});
    return calls.back();
  }
  if (calls.size() <= call) calls.push_back(Json::object());
  return calls[call];
}

// Adds events to a message (whole answers) or a delta (`with_index`).
void apply(const std::vector<AnswerEvent>& events, bool with_index, Json& target) {
  for (const AnswerEvent& event : events) {
    switch (event.kind) {
      case Kind::kReasoning:
        append(target, "reasoning_content", event.text);
        break;
      case Kind::kContent:
        append(target, "content", event.text);
        break;
      case Kind::kCallBegin: {
        Json& call = call_entry(target, event.call, with_index);
        call["id"] = event.id;
        call["type"] = "function";
        call["function"] = {{"name", event.name}, {"arguments", ""}};
        break;
      }
      case Kind::kArguments:
        append(call_entry(target, event.call, with_index)["function"], "arguments", event.text);
        break;
      case Kind::kCallEnd:
        break;
    }
  }
}

int64_t reasoning_tokens(const AnswerParser& parser, const GenerateResult& result,
                         const Tokenizer& tokenizer) {
  return tokens_of_text(tokenizer, result.token_ids, parser.thought_bytes());
}

}  // namespace

Json chat_answer(const AnswerHead& head, const ChatRequest& request, Thought thought,
                 const Tokenizer& tokenizer, std::span<const GenerateResult> results) {
  Json body = head.json("chat.completion");
  Json& choices = body["choices"] = Json::array();
  Usage usage;
  for (size_t i = 0; i < results.size(); ++i) {
    const GenerateResult& result = results[i];
    AnswerParser parser = make_parser(head, request, thought, static_cast<int64_t>(i));
    std::vector<AnswerEvent> events;
    parser.feed(result.text, events);
    parser.finish(events);
    Json message = {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}};
    apply(events, false, message);
    if (message["content"] == "" && parser.calls() > 0) message["content"] = nullptr;
    choices.push_back(
        {{"index", i},
         {"message", std::move(message)},
         {"logprobs", request.wants_logprobs()
                          ? chat_logprobs(tokenizer, result.token_ids, result.logprobs)
                          : Json()},
         {"finish_reason", finish_reason_name(result.finish_reason, parser.calls() > 0)}});
    usage.add(result, i == 0, reasoning_tokens(parser, result, tokenizer));
  }
  body["usage"] = usage.json();
  if (results.size() == 1) body["timings"] = timings_json(results.front());
  return body;
}

ChatStream::ChatStream(AnswerHead head, const ChatRequest& request, Thought thought,
                       const Tokenizer& tokenizer)
    : head_(std::move(head)), request_(request), tokenizer_(tokenizer) {
  for (int64_t i = 0; i < request.n; ++i) {
    choices_.push_back({make_parser(head_, request, thought, i), {}});
  }
}

Json ChatStream::chunk(int64_t choice, Json delta) const {
  Json body = head_.json("chat.completion.chunk");
  body["choices"] = {{{"index", choice},
                      {"delta", std::move(delta)},
                      {"logprobs", nullptr},
                      {"finish_reason", nullptr}}};
  if (request_.include_usage) body["usage"] = nullptr;
  return body;
}

std::string ChatStream::begin() {
  std::string out;
  for (int64_t i = 0; i < request_.n; ++i) {
    out += sse_event(chunk(i, {{"role", "assistant"}, {"content", ""}}));
  }
  return out;
}

std::string ChatStream::flush(int64_t choice, const std::vector<AnswerEvent>& events) {
  Json delta = Json::object();
  apply(events, true, delta);
  if (delta.empty()) return {};
  PendingStep& pending = choices_.at(static_cast<size_t>(choice)).pending;
  Json body = chunk(choice, std::move(delta));
  if (request_.wants_logprobs()) {
    body["choices"][0]["logprobs"] = chat_logprobs(tokenizer_, pending.token_ids, pending.logprobs);
  }
  body["orthrus"] = pending.json();
  pending = {};
  return sse_event(body);
}

std::string ChatStream::step(int64_t choice, const AnswerStep& step) {
  Choice& state = choices_.at(static_cast<size_t>(choice));
  state.pending.add(step);
  std::vector<AnswerEvent> events;
  state.parser.feed(step.text, events);
  return flush(choice, events);
}

std::string ChatStream::done(int64_t choice, const GenerateResult& result) {
  Choice& state = choices_.at(static_cast<size_t>(choice));
  std::vector<AnswerEvent> events;
  state.parser.finish(events);
  std::string out = flush(choice, events);
  Json body = chunk(choice, Json::object());
  Json& entry = body["choices"][0];
  if (request_.wants_logprobs() && !state.pending.token_ids.empty()) {
    entry["logprobs"] = chat_logprobs(tokenizer_, state.pending.token_ids, state.pending.logprobs);
  }
  entry["finish_reason"] = finish_reason_name(result.finish_reason, state.parser.calls() > 0);
  body["orthrus"] = state.pending.json();
  body["timings"] = timings_json(result);
  usage_.add(result, choice == 0, reasoning_tokens(state.parser, result, tokenizer_));
  return out + sse_event(body);
}

std::string ChatStream::end() {
  std::string out;
  if (request_.include_usage) {
    Json body = head_.json("chat.completion.chunk");
    body["choices"] = Json::array();
    body["usage"] = usage_.json();
    out = sse_event(body);
  }
  return out + kSseDone;
}

}  // namespace orthrus
