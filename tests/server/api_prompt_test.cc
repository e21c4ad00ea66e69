#include "server/api_prompt.h"

#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

const ChatTemplate& qwen3() {
  static const auto chat_template = ChatTemplate::load(ORTHRUS_TEST_DATA "/template/qwen3.jinja");
  return *chat_template;
}

ChatRequest parse(const std::string& body) { return parse_chat_request(body, test_context()); }

TEST(ApiPrompt, KnowsWhetherAThoughtMayCome) {
  EXPECT_EQ(render_chat(chat(), qwen3()).thought, Thought::kMayBegin);
  EXPECT_EQ(
      render_chat(chat(R"("chat_template_kwargs": {"enable_thinking": false})"), qwen3()).thought,
      Thought::kNone);
  const ChatTemplate opens("{{ messages[0]['content'] }}<think>\n");
  EXPECT_EQ(render_chat(chat(), opens).thought, Thought::kOpen);
  ChatRequest without = chat();
  without.thinks = false;
  EXPECT_EQ(render_chat(without, opens).thought, Thought::kNone);
}

TEST(ApiPrompt, TheServersVariablesGoBehindTheRequests) {
  ApiContext context = test_context();
  context.template_kwargs = {{"enable_thinking", false}};
  EXPECT_EQ(render_chat(parse_chat_request(chat_body(), context), qwen3()).thought, Thought::kNone);
  const std::string body = chat_body(R"("chat_template_kwargs": {"enable_thinking": true})");
  EXPECT_EQ(render_chat(parse_chat_request(body, context), qwen3()).thought, Thought::kMayBegin);
}

TEST(ApiPrompt, FormsBeginBehindTheThought) {
  const ChatRequest request = chat(R"("response_format": {"type": "json_object"})");
  GenerateOptions options = chat_options(request, {"", Thought::kMayBegin}, 1);
  EXPECT_EQ(options.thinking_begin, "<think>");
  EXPECT_EQ(options.thinking_end, "</think>");
  EXPECT_EQ(options.sampling.choice, 1u);
  options = chat_options(request, {"", Thought::kOpen}, 0);
  EXPECT_EQ(options.thinking_begin, "");
  EXPECT_EQ(options.thinking_end, "</think>");
  EXPECT_EQ(chat_options(request, {"", Thought::kNone}, 0).thinking_end, "");
  EXPECT_EQ(chat_options(chat(), {"", Thought::kMayBegin}, 0).thinking_end, "");
}

TEST(ApiPrompt, ContinuesTheLastMessage) {
  const std::string user = R"({"messages": [{"role": "user", "content": "Hi"}, )";
  const auto text = [&](const std::string& content) {
    return render_chat(parse(user + R"({"role": "assistant", "content": ")" + content +
                             R"("}], "continue_final_message": true})"),
                       qwen3());
  };
  EXPECT_EQ(text("Well, ").text,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nWell,");
  EXPECT_EQ(text("Hi").thought, Thought::kNone);
  EXPECT_TRUE(text("Hi").text.ends_with("</think>\n\nHi"));
  const ChatTemplate plain("{{ messages[-1]['content'] }}<end>");
  const ChatRequest open = parse(
      user + R"({"role": "assistant", "content": "<think>hm"}], "continue_final_message": true})");
  EXPECT_EQ(render_chat(open, plain).text, "<think>hm");
  EXPECT_EQ(render_chat(open, plain).thought, Thought::kOpen);
  const ChatTemplate silent("x");
  EXPECT_EQ(api_error_of([&] { render_chat(open, silent); }),
            "400 continue_final_message invalid_value: continue_final_message: the chat template "
            "does not write the last message as it is.");
}

TEST(ApiPrompt, TheTemplatesRefusalIsTheRequesters) {
  const ChatTemplate refuses("{{ raise_exception('roles must alternate') }}");
  const std::string error = api_error_of([&] { render_chat(chat(), refuses); });
  EXPECT_EQ(error.substr(0, 13), "400 messages ");
  EXPECT_NE(error.find("roles must alternate"), std::string::npos);
}

TEST(ApiPrompt, ThatFillsTheContextIsRefused) {
  check_prompt_length(9, 10);
  EXPECT_EQ(api_error_of([] { check_prompt_length(10, 10); }),
            "400 - context_length_exceeded: The prompt has 10 tokens, but the context holds 10 and "
            "one must be left for the answer.");
}

}  // namespace
}  // namespace orthrus
