#include <gtest/gtest.h>

#include "server/api_chat_answer.h"
#include "server/api_completion_answer.h"
#include "server/api_test_support.h"
#include "text/stream_decoder.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

const AnswerHead kHead = {"chatcmpl-7", 1700000000, "tiny", "orthrus-1"};

GenerateResult result_of(const std::string& text) {
  GenerateResult result;
  result.text = text;
  result.token_ids = tiny_tokenizer().encode(text);
  result.token_ids.push_back(1023);
  result.finish_reason = FinishReason::kStop;
  result.prompt_tokens = 9;
  result.cached_tokens = 4;
  result.cycles = 2;
  result.drafted = 8;
  result.accepted = 3;
  result.forward_passes = 4;
  result.prefill_seconds = 0.5;
  result.decode_seconds = 0.25;
  return result;
}

const char* const kTimings =
    R"({"cache_n":4,"prompt_n":5,"prompt_ms":500.0,"prompt_per_second":10.0,"predicted_n":3,)"
    R"("predicted_ms":250.0,"predicted_per_second":8.0,"draft_n":8,"draft_n_accepted":3,)"
    R"("cycles":2,"tokens_per_cycle":2.5,"forward_passes":4,"tpf":0.75})";

// The JSON of every event, and whether the stream ends as it must.
std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  const std::string begin = "data: ";
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    if (end == stream.npos || stream.compare(at, begin.size(), begin) != 0) {
      ADD_FAILURE() << "no event at " << at;
      break;
    }
    const std::string data = stream.substr(at + begin.size(), end - at - begin.size());
    events.push_back(data == "[DONE]" ? Json("[DONE]") : Json::parse(data));
    at = end + 2;
  }
  return events;
}

TEST(ChatAnswer, OneText) {
  EXPECT_EQ(
      chat_answer(kHead, chat(), Thought::kNone, tiny_tokenizer(), {{result_of("Hi")}}).dump(),
      R"({"id":"chatcmpl-7","object":"chat.completion","created":1700000000,"model":"tiny",)"
      R"("system_fingerprint":"orthrus-1","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,)"
      R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":)"
      R"({"reasoning_tokens":0,"accepted_prediction_tokens":3,)"
      R"("rejected_prediction_tokens":5}},"timings":)" +
          std::string(kTimings) + "}");
}

TEST(ChatAnswer, ThoughtsAndCalls) {
  ChatRequest request = chat(R"("n": 2)");
  request.tools = true;
  const std::string calls =
      "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":  1}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"g\"}\n</tool_call>";
  GenerateResult cut = result_of("Hi");
  cut.finish_reason = FinishReason::kLength;
  const Json body =
      chat_answer(kHead, request, Thought::kMayBegin, tiny_tokenizer(), {{result_of(calls), cut}});
  EXPECT_EQ(body["choices"][0].dump(),
            R"({"index":0,"message":{"role":"assistant","content":null,"refusal":null,)"
            R"("reasoning_content":"hm","tool_calls":[)"
            R"({"id":"call_7_0_0","type":"function","function":{"name":"f","arguments":)"
            R"("{\"a\":  1}"}},{"id":"call_7_0_1","type":"function","function":{"name":"g",)"
            R"("arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"})");
  EXPECT_EQ(body["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 9);  // one prompt
  // "<think>\nhm\n</think>" is 14 tokens of this vocabulary.
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"],
            tiny_tokenizer().encode("<think>\nhm\n</think>").size());
  EXPECT_FALSE(body.contains("timings"));
}

TEST(ChatStream, SaysWhatTheWholeAnswerSays) {
  ChatRequest request =
      chat(R"("stream": true, "stream_options": {"include_usage": true}, "logprobs": true)");
  request.tools = true;
  GenerateResult result = result_of(
      "<think>\nhm\n</think>\n\nSo: é\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
      "\"b\"}}\n"
      "</tool_call>");
  result.logprobs.resize(result.token_ids.size());
  ChatStream stream(kHead, request, Thought::kMayBegin, tiny_tokenizer());
  std::string sent = stream.begin();
  StreamDecoder decoder(tiny_tokenizer());
  for (int32_t id : result.token_ids) {
    AnswerStep step{decoder.push(id), {id}, {{}}, 1};
    sent += stream.step(0, step);
  }
  sent += stream.done(0, result);
  sent += stream.end();

  const std::vector<Json> events = events_of(sent);
  std::string content, reasoning, arguments, name;
  size_t tokens = 0, cycles = 0;
  for (const Json& event : events) {
    if (event == "[DONE]" || event["choices"].empty()) continue;
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_TRUE(event["usage"].is_null());
    const Json& choice = event["choices"][0];
    const Json& delta = choice["delta"];
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
    if (delta.contains("tool_calls")) {
      const Json& call = delta["tool_calls"][0];
      EXPECT_EQ(call["index"], 0);
      EXPECT_EQ(call.value("id", "call_7_0_0"), "call_7_0_0");
      name += call["function"].value("name", "");
      arguments += call["function"].value("arguments", "");
    }
    if (choice["logprobs"].is_object()) tokens += choice["logprobs"]["content"].size();
    if (event.contains("orthrus")) cycles += event["orthrus"]["cycles"].size();
  }
  EXPECT_EQ(content, "So: é");
  EXPECT_EQ(reasoning, "hm");
  EXPECT_EQ(name, "f");
  EXPECT_EQ(arguments, R"({"a": "b"})");
  EXPECT_EQ(tokens, result.token_ids.size());  // none lost, none twice
  EXPECT_EQ(cycles, result.token_ids.size());
  const Json whole = chat_answer(kHead, request, Thought::kMayBegin, tiny_tokenizer(), {{result}});
  EXPECT_EQ(events.at(events.size() - 1), "[DONE]");
  EXPECT_EQ(events.at(events.size() - 2)["usage"].dump(), whole["usage"].dump());
  EXPECT_EQ(events.at(events.size() - 3)["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(events.at(events.size() - 3)["timings"].dump(), whole["timings"].dump());
}

TEST(ChatStream, Chunks) {
  const ChatRequest request = chat(R"("stream": true, "n": 2)");
  ChatStream stream(kHead, request, Thought::kNone, tiny_tokenizer());
  const std::string head =
      R"(data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"tiny","system_fingerprint":"orthrus-1","choices":[{"index":1,"delta":)";
  const auto roles = events_of(stream.begin());
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles[1]["choices"][0]["delta"].dump(), R"({"role":"assistant","content":""})");
  EXPECT_EQ(stream.step(1, {"", {}, {}, 3}), "");  // held back, but its cycle counts
  EXPECT_EQ(stream.step(1, {"Hi\n", {}, {}, 2}),
            head + R"({"content":"Hi\n"},"logprobs":null,"finish_reason":null}],)"
                   R"("orthrus":{"cycles":[3,2],"forward_passes":0}})"
                   "\n\n");
  EXPECT_EQ(
      stream.done(1, result_of("Hi")),
      head +
          R"({},"logprobs":null,"finish_reason":"stop"}],"orthrus":{"cycles":[],"forward_passes":0},)"
          R"("timings":)" +
          kTimings + "}\n\n");
  EXPECT_EQ(stream.end(), kSseDone);
}

TEST(ChatStream, HeldBackTextComesAtTheEnd) {
  ChatRequest request = chat(R"("stream": true)");
  request.tools = true;
  ChatStream stream(kHead, request, Thought::kNone, tiny_tokenizer());
  EXPECT_EQ(stream.step(0, {"<tool_", {}, {}, 4}), "");
  const auto events = events_of(stream.done(0, result_of("<tool_")));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["choices"][0]["delta"].dump(), R"({"content":"<tool_"})");
  EXPECT_EQ(events[0]["orthrus"]["cycles"].dump(), "[4]");
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "stop");
}

TEST(Stream, ErrorsEndIt) {
  EXPECT_EQ(sse_error(queue_full()),
            R"(data: {"error":{"message":"Too many requests are waiting; try again later.",)"
            R"("type":"rate_limit_error","param":null,"code":"queue_full"}})"
            "\n\ndata: [DONE]\n\n");
}

TEST(CompletionAnswer, PromptsAndChoices) {
  const CompletionRequest request =
      parse_completion_request(R"({"prompt": ["Hi", "H"], "n": 2, "echo": true})", test_context());
  std::vector<CompletionPrompt> prompts;
  for (const auto& prompt : request.prompts) {
    prompts.push_back(completion_prompt(prompt, tiny_tokenizer()));
  }
  GenerateResult cut = result_of(" a");
  cut.finish_reason = FinishReason::kLength;
  const Json body = completion_answer(kHead, request, prompts, tiny_tokenizer(),
                                      {{result_of("i"), cut, cut, cut}});
  EXPECT_EQ(body["object"], "text_completion");
  ASSERT_EQ(body["choices"].size(), 4u);
  EXPECT_EQ(body["choices"][0].dump(),
            R"({"index":0,"text":"Hii","logprobs":null,"finish_reason":"stop"})");
  EXPECT_EQ(body["choices"][1]["text"], "Hi a");
  EXPECT_EQ(body["choices"][3].dump(),
            R"({"index":3,"text":"H a","logprobs":null,"finish_reason":"length"})");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 18);  // each prompt once
}

TEST(CompletionAnswer, WhatEvaluationsRead) {
  const CompletionRequest request = parse_completion_request(
      R"({"prompt": [[39, 72, 258]], "echo": true, "logprobs": 1, "max_tokens": 1})",
      test_context());
  const std::vector<CompletionPrompt> prompts = {{{39, 72, 258}, 0}};
  GenerateResult result = result_of("");  // the end of the text at once: still a token
  result.prompt_logprobs = {{-1, {{72, -1}}}, {-3, {{72, -2}}}};
  result.logprobs = {{-0.5, {{1023, -0.5}}}};
  const Json body = completion_answer(kHead, request, prompts, tiny_tokenizer(), {{result}});
  EXPECT_EQ(body["choices"][0]["text"], "Hi a");
  const Json& logprobs = body["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["token_logprobs"].dump(), "[null,-1.0,-3.0,-0.5]");
  EXPECT_EQ(logprobs["top_logprobs"].dump(),
            R"([null,{"i":-1.0},{"i":-2.0," a":-3.0},{"<|im_end|>":-0.5}])");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,1,2,4]");
}

TEST(CompletionStream, EchoesAndCounts) {
  const CompletionRequest request = completion(R"("stream": true, "echo": true)");
  const std::vector<CompletionPrompt> prompts = {completion_prompt("Hi", tiny_tokenizer())};
  CompletionStream stream(kHead, request, prompts, tiny_tokenizer());
  const auto echo = events_of(stream.begin());
  ASSERT_EQ(echo.size(), 1u);
  EXPECT_EQ(echo[0]["choices"][0].dump(),
            R"({"index":0,"text":"Hi","logprobs":null,"finish_reason":null})");
  EXPECT_EQ(stream.step(0, {"", {}, {}, 1}), "");
  const auto step = events_of(stream.step(0, {" a", {}, {}, 2}));
  EXPECT_EQ(step[0]["orthrus"].dump(), R"({"cycles":[1,2],"forward_passes":0})");
  const auto done = events_of(stream.done(0, result_of("Hi")));
  EXPECT_EQ(done[0]["choices"][0].dump(),
            R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"})");
  EXPECT_EQ(done[0]["timings"].dump(), kTimings);
  EXPECT_EQ(stream.end(), kSseDone);
}

TEST(CompletionStream, LogprobsOfHeldBackTokensComeWithTheNextText) {
  const CompletionRequest request = completion(R"("stream": true, "logprobs": 0)");
  const std::vector<CompletionPrompt> prompts = {completion_prompt("Hi", tiny_tokenizer())};
  CompletionStream stream(kHead, request, prompts, tiny_tokenizer());
  EXPECT_EQ(stream.step(0, {"", {127}, {{-1, {}}}, 1}), "");
  const auto step = events_of(stream.step(0, {"é", {102}, {{-2, {}}}, 1}));
  EXPECT_EQ(step[0]["choices"][0]["logprobs"].dump(),
            R"({"tokens":["bytes:\\xc3","bytes:\\xa9"],"token_logprobs":[-1.0,-2.0],)"
            R"("top_logprobs":[{"bytes:\\xc3":-1.0},{"bytes:\\xa9":-2.0}],"text_offset":[0,0]})");
}

}  // namespace
}  // namespace orthrus
