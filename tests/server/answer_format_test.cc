#include "server/answer_format.h"

#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

std::string refusal(const std::string& prompt, int64_t max_seq_len) {
  return api_error_of([&] {
    make_completion_format(R"({"prompt": ")" + prompt + R"("})", test_context(), {},
                           tiny_tokenizer(), max_seq_len);
  });
}

TEST(AnswerFormat, PromptsThatCannotFitAreRefusedByTheirBytes) {
  const size_t longest = tiny_tokenizer().max_token_bytes();
  ASSERT_GT(longest, 4u);
  const std::string most = std::to_string(10 * longest);
  const std::string more = std::to_string(10 * longest + 1);
  EXPECT_EQ(refusal(std::string(10 * longest + 1, 'q'), 10),
            "400 - context_length_exceeded: The prompt has " + more +
                " bytes, but the context holds 10 tokens, which are at most " + most + " bytes.");
  EXPECT_NE(refusal(std::string(10 * longest, 'q'), 10).find(" tokens, but the context holds 10 "),
            std::string::npos);
  EXPECT_EQ(refusal("qqq", 10), "no error");

  const ChatTemplate chat_template("{{ messages[0]['content'] * 100 }}");
  const auto chat = [&](int64_t max_seq_len) {
    return api_error_of([&] {
      make_chat_format(chat_body(), test_context(), {}, &chat_template, tiny_tokenizer(),
                       max_seq_len);
    });
  };
  EXPECT_NE(chat(2).find("The prompt has 200 bytes, but the context holds 2 tokens"),
            std::string::npos);
  EXPECT_EQ(chat(1000), "no error");
}

}  // namespace
}  // namespace orthrus
