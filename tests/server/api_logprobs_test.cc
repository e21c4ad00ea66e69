#include "server/api_logprobs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

using Ids = std::vector<int32_t>;

std::vector<TokenLogprobs> values(size_t count) {
  std::vector<TokenLogprobs> out(count);
  for (size_t i = 0; i < count; ++i) out[i].logprob = -0.5 * static_cast<double>(i + 1);
  return out;
}

std::string offsets(const Ids& ids) {
  CompletionLogprobs logprobs(tiny_tokenizer());
  return logprobs.answer(ids, values(ids.size()))["text_offset"].dump();
}

TEST(ApiLogprobs, TokensOfChatsHaveTheirBytes) {
  // "Hi", the first byte of "é", an id that has no token in the vocabulary.
  const std::vector<TokenLogprobs> logprobs = {
      {-0.25, {{39, -0.25}, {127, -2}}}, {-INFINITY, {}}, {-1, {}}};
  EXPECT_EQ(chat_logprobs(tiny_tokenizer(), Ids{39, 127, 5000}, logprobs).dump(),
            R"({"content":[)"
            R"({"token":"H","logprob":-0.25,"bytes":[72],"top_logprobs":[)"
            R"({"token":"H","logprob":-0.25,"bytes":[72]},)"
            R"({"token":"bytes:\\xc3","logprob":-2.0,"bytes":[195]}]},)"
            R"({"token":"bytes:\\xc3","logprob":-9999.0,"bytes":[195],"top_logprobs":[]},)"
            R"({"token":"","logprob":-1.0,"bytes":[],"top_logprobs":[]}],"refusal":null})");
}

TEST(ApiLogprobs, OffsetsCountCharacters) {
  const Ids e = {127, 102}, euro = {158, 224, 105}, face = {172, 253, 246, 222};
  EXPECT_EQ(offsets({39, 127, 102, 72}), "[0,1,1,2]");   // Hé i
  EXPECT_EQ(offsets({158, 224, 105, 72}), "[0,0,0,1]");  // €i
  EXPECT_EQ(offsets({172, 253, 246, 222, 127, 102}), "[0,0,0,0,1,1]");
  // A character that is never finished is one U+FFFD; so is each stray byte.
  EXPECT_EQ(offsets({158, 224, 72}), "[0,0,1]");
  EXPECT_EQ(offsets({105, 105, 72}), "[0,1,2]");
  EXPECT_EQ(offsets({158, 172, 72}), "[0,1,2]");
  // The end of the text (a special token) has no text.
  EXPECT_EQ(offsets({72, 1023}), "[0,1]");
}

TEST(ApiLogprobs, OffsetsGoOnFromPieceToPiece) {
  CompletionLogprobs logprobs(tiny_tokenizer());
  EXPECT_EQ(logprobs.answer(Ids{39, 158}, values(2))["text_offset"].dump(), "[0,1]");
  EXPECT_EQ(logprobs.answer(Ids{224, 105}, values(2))["text_offset"].dump(), "[1,1]");
  EXPECT_EQ(logprobs.answer(Ids{72}, values(1))["text_offset"].dump(), "[2]");
}

TEST(ApiLogprobs, ThePromptsFirstTokenHasNoProbability) {
  CompletionLogprobs builder(tiny_tokenizer());
  std::vector<TokenLogprobs> logprobs = {{-1, {{258, -0.5}}}};
  nlohmann::ordered_json lists;
  append_completion_logprobs(lists, builder.prompt(Ids{39, 72}, logprobs, 0));
  append_completion_logprobs(lists, builder.answer(Ids{258}, {{{-0.125, {{258, -0.125}}}}}));
  EXPECT_EQ(lists.dump(),
            R"({"tokens":["H","i"," a"],"token_logprobs":[null,-1.0,-0.125],)"
            R"("top_logprobs":[null,{" a":-0.5,"i":-1.0},{" a":-0.125}],"text_offset":[0,1,2]})");
}

TEST(ApiLogprobs, HiddenTokensAndUnfinishedPromptsMoveNothing) {
  CompletionLogprobs builder(tiny_tokenizer());
  EXPECT_EQ(builder.prompt(Ids{1021, 39, 127}, values(2), 1)["text_offset"].dump(), "[0,0,1]");
  // The answer's byte does not finish the prompt's character.
  EXPECT_EQ(builder.answer(Ids{102, 72}, values(2))["text_offset"].dump(), "[2,3]");
}

TEST(ApiLogprobs, ReadersOfTheGreatestFindTheChosen) {  // lm-evaluation-harness's is_greedy
  CompletionLogprobs builder(tiny_tokenizer());
  const auto lists = builder.answer(Ids{72}, {{{-0.25, {{72, -0.25}}}}});
  EXPECT_EQ(lists["top_logprobs"][0].dump(), R"({"i":-0.25})");
  EXPECT_EQ(lists["token_logprobs"][0], lists["top_logprobs"][0]["i"]);
}

}  // namespace
}  // namespace orthrus
