#include <gtest/gtest.h>

#include <functional>

#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

/// An array of arrays; nlohmann takes such a list for an object.
json pairs(const std::vector<std::vector<std::string>>& merges) { return merges; }

/// A tokenizer.json of 14 tokens. The ids expected below are those of the `tokenizers` package
/// (0.23.3) for the same file.
json small_tokenizer() {
  json vocab = json::object();
  int32_t id = 0;
  for (const char* token :
       {"a", "b", "c", "d", "1", "Ġ", "Ã", "©", "ab", "abc", "Ġa", "cd", "<s>", "[X]"}) {
    vocab[token] = id++;
  }
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  json model = {{"type", "BPE"},
                {"unk_token", nullptr},
                {"ignore_merges", false},
                {"vocab", vocab},
                {"merges", pairs({{"a", "b"}, {"ab", "c"}, {"Ġ", "a"}})}};
  return {{"version", "1.0"},      {"added_tokens", json::array()},
          {"normalizer", nullptr}, {"pre_tokenizer", byte_level},
          {"decoder", byte_level}, {"model", model}};
}

json added(int32_t id, const std::string& content, json flags = json::object()) {
  json token = {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  token.update(flags);
  return token;
}

Ids encode(const json& document, const std::string& text) {
  return Tokenizer::from_json(document.dump()).encode(text);
}

TEST(TokenizerJson, Plain) {
  Tokenizer tokenizer = Tokenizer::from_json(small_tokenizer().dump());
  EXPECT_EQ(tokenizer.encode("abc ab cd"), (Ids{9, 5, 8, 5, 2, 3}));
  EXPECT_EQ(tokenizer.encode("é1"), (Ids{6, 7, 4}));
  EXPECT_EQ(tokenizer.encode("<s>"), Ids{});  // not added, and its bytes have no tokens
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{10, 6, 7}), " aé");
  EXPECT_EQ(tokenizer.vocab_size(), 14);
  EXPECT_EQ(tokenizer.max_token_bytes(), 3u);
}

TEST(TokenizerJson, MergesAsStrings) {
  json document = small_tokenizer();
  document["model"]["merges"] = json::array({"a b", "ab c", "Ġ a"});
  EXPECT_EQ(encode(document, "abc ab cd"), (Ids{9, 5, 8, 5, 2, 3}));
}

TEST(TokenizerJson, IgnoreMerges) {
  json document = small_tokenizer();
  EXPECT_EQ(encode(document, "cd"), (Ids{2, 3}));
  document["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode(document, "cd"), (Ids{11}));
  EXPECT_EQ(encode(document, "abc cd"), (Ids{9, 5, 2, 3}));
}

TEST(TokenizerJson, UnknownToken) {
  json document = small_tokenizer();
  EXPECT_EQ(encode(document, "axyb"), (Ids{8}));
  document["model"]["unk_token"] = "<s>";
  EXPECT_EQ(encode(document, "axyb é"), (Ids{0, 12, 12, 1, 5, 6, 7}));
  document["model"]["fuse_unk"] = true;
  EXPECT_EQ(encode(document, "axyb"), (Ids{0, 12, 1}));
}

TEST(TokenizerJson, OfTwoEqualMergesTheLaterCounts) {
  json document = small_tokenizer();
  document["model"]["vocab"]["bc"] = 14;
  document["model"]["merges"] = pairs({{"a", "b"}, {"b", "c"}, {"a", "b"}});
  EXPECT_EQ(encode(document, "abc"), (Ids{0, 14}));
}

TEST(TokenizerJson, AddedTokens) {
  json document = small_tokenizer();
  document["added_tokens"] =
      json::array({added(12, "<s>"), added(13, "[X]", {{"special", false}})});
  Tokenizer tokenizer = Tokenizer::from_json(document.dump());
  EXPECT_EQ(tokenizer.encode("a<s>b[X]c<s"), (Ids{0, 12, 1, 13, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{12, 0, 13}), "<s>a[X]");
  EXPECT_EQ(tokenizer.decode(Ids{12, 0, 13}, true), "a[X]");
}

TEST(TokenizerJson, TheLongestAddedTokenWins) {
  json document = small_tokenizer();
  document["added_tokens"] =
      json::array({added(12, "<s>"), added(13, "[X]"), added(14, "<s>[X]"), added(1, "b")});
  EXPECT_EQ(encode(document, "a<s>[X]<s><s>b"), (Ids{0, 14, 12, 12, 1}));
}

TEST(TokenizerJson, AddedTokensThatStrip) {
  json document = small_tokenizer();
  document["added_tokens"] =
      json::array({added(12, "<s>", {{"lstrip", true}}), added(13, "[X]", {{"rstrip", true}})});
  EXPECT_EQ(encode(document, "a  <s> b [X]  c"), (Ids{0, 12, 5, 1, 5, 13, 2}));
  EXPECT_EQ(encode(document, "[X]  <s>  <s>"), (Ids{13, 12, 12}));
  EXPECT_EQ(encode(document, "a \u3000\u00A0<s>"), (Ids{0, 12}));
  document["added_tokens"] = json::array({added(14, " ", {{"rstrip", true}})});
  EXPECT_EQ(encode(document, "a   b"), (Ids{0, 14, 14, 14, 1}));
}

TEST(TokenizerJson, StrippingIsLinear) {
  json document = small_tokenizer();
  document["added_tokens"] = json::array({added(14, " ", {{"rstrip", true}, {"lstrip", true}})});
  Tokenizer tokenizer = Tokenizer::from_json(document.dump());
  std::string text(1'000'000, ' ');
  EXPECT_LT(cpu_seconds([&] { EXPECT_EQ(tokenizer.encode(text).size(), text.size()); }),
            1.0 * kSlowBuild);
}

TEST(TokenizerJson, NfcAndAddedTokens) {
  json document = small_tokenizer();
  document["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(encode(document, "e\u0301"), (Ids{6, 7}));
  json normalized = {{"normalized", true}};
  document["added_tokens"] = json::array({added(14, "é", normalized), added(15, "[Y]")});
  EXPECT_EQ(encode(document, "aéb e\u0301 [Y]"), (Ids{0, 14, 1, 5, 14, 5, 15}));
  document["added_tokens"] = json::array({added(14, "e\u0301", normalized)});
  EXPECT_EQ(encode(document, "aéb e\u0301"), (Ids{0, 14, 1, 5, 14}));
  document["added_tokens"] = json::array({added(14, "e\u0301")});
  EXPECT_EQ(encode(document, "aéb e\u0301"), (Ids{0, 6, 7, 1, 5, 14}));
}

TEST(TokenizerJson, SplitBehaviors) {
  auto with = [](const char* behavior, bool invert) {
    json document = small_tokenizer();
    json split = {{"type", "Split"},
                  {"pattern", {{"String", "b"}}},
                  {"behavior", behavior},
                  {"invert", invert}};
    json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    document["pre_tokenizer"] = {{"type", "Sequence"},
                                 {"pretokenizers", json::array({split, byte_level})}};
    return encode(document, "abcbbd");
  };
  EXPECT_EQ(with("Isolated", false), (Ids{0, 1, 2, 1, 1, 3}));
  EXPECT_EQ(with("Removed", false), (Ids{0, 2, 3}));
  EXPECT_EQ(with("Removed", true), (Ids{1, 1, 1}));
  EXPECT_EQ(with("MergedWithPrevious", false), (Ids{8, 2, 1, 1, 3}));
  EXPECT_EQ(with("MergedWithPrevious", true), (Ids{0, 1, 2, 1, 1, 3}));
  EXPECT_EQ(with("MergedWithNext", false), (Ids{0, 1, 2, 1, 1, 3}));
  EXPECT_EQ(with("MergedWithNext", true), (Ids{8, 2, 1, 1, 3}));
  EXPECT_EQ(with("Contiguous", false), (Ids{0, 1, 2, 1, 1, 3}));
}

TEST(TokenizerJson, PatternsAndDigitsInSequence) {
  json document = small_tokenizer();
  json split = {{"type", "Split"}, {"pattern", {{"String", "a b"}}}, {"behavior", "Isolated"}};
  json digits = {{"type", "Digits"}, {"individual_digits", false}};
  json last = document["pre_tokenizer"];
  document["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", json::array({split, digits, last})}};
  EXPECT_EQ(encode(document, "a b11c ab"), (Ids{0, 5, 1, 4, 4, 2, 5, 8}));
}

/// The message with which a changed file is refused.
std::string refusal(const std::function<void(json&)>& change) {
  json document = small_tokenizer();
  change(document);
  try {
    Tokenizer::from_json(document.dump());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

struct Refused {
  const char* pointer;  // of the value that is replaced
  json value;
  const char* message;  // part of what must be said
};

// Llama 3's file has this shape; the ids are those of the `tokenizers` package.
TEST(TokenizerJson, WhatComesBeforeATextIsAddedWhereAskedFor) {
  json document = small_tokenizer();
  document["added_tokens"] = json::array({added(12, "<s>")});
  const json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json start = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const json end = {{"SpecialToken", {{"id", "[X]"}, {"type_id", 0}}}};
  document["post_processor"] = {
      {"type", "Sequence"},
      {"processors", json::array({{{"type", "ByteLevel"}, {"add_prefix_space", true}},
                                  {{"type", "TemplateProcessing"},
                                   {"single", json::array({start, sequence, end})}}})}};
  const Tokenizer tokenizer = Tokenizer::from_json(document.dump());
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{8}));
  EXPECT_EQ(tokenizer.encode("ab", true), (Ids{12, 8}));
  EXPECT_EQ(tokenizer.encode("<s>ab", true), (Ids{12, 8}));
  EXPECT_EQ(tokenizer.encode("", true), (Ids{12}));
  EXPECT_EQ(Tokenizer::from_json(small_tokenizer().dump()).encode("ab", true), (Ids{8}));
}

TEST(TokenizerJson, WhatIsNotSupportedIsNamed) {
  json strip = {{"type", "Strip"}};
  const Refused cases[] = {
      {"/model/type", "Unigram", "model.type \"Unigram\""},
      {"/model/dropout", 0.1, "model.dropout"},
      {"/post_processor", {{"type", "BertProcessing"}}, "post_processor \"BertProcessing\""},
      {"/post_processor",
       {{"type", "TemplateProcessing"},
        {"single", json::array({{{"SpecialToken", {{"id", "<q>"}}}}})}},
       "post_processor.single names \"<q>\", which is not among the added tokens"},
      {"/post_processor",
       {{"type", "TemplateProcessing"}, {"single", "x"}},
       "post_processor.single is not an array"},
      {"/post_processor",
       {{"type", "TemplateProcessing"}, {"single", json::array({nullptr})}},
       "post_processor.single has a piece that is neither a Sequence nor a SpecialToken"},
      {"/model/byte_fallback", true, "pre_tokenizer \"ByteLevel\""},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix \"</w>\""},
      {"/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix \"##\""},
      {"/model/unk_token", "<unk>", "model.unk_token \"<unk>\""},
      {"/model/ignore_merges", 1, "model.ignore_merges is not a boolean"},
      {"/normalizer", strip, "normalizer \"Strip\""},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", json::array({strip})}},
       "normalizer \"Strip\""},
      {"/pre_tokenizer", nullptr, "pre_tokenizer \"\""},
      {"/pre_tokenizer/type", "Metaspace", "pre_tokenizer \"Metaspace\""},
      {"/pre_tokenizer/add_prefix_space", true, "add_prefix_space"},
      {"/decoder/type", "Metaspace", "decoder \"Metaspace\""},
      {"/decoder", nullptr, "decoder \"\""},
      {"/added_tokens", json::array({added(12, "<s>", {{"single_word", true}})}),
       "added_tokens[0].single_word"},
      {"/added_tokens", json::array({added(5, "<s>")}), "has id 5, but 12 in the vocabulary"},
      {"/added_tokens", json::array({added(5, "<t>")}), "has the id 5 of another token"},
      {"/added_tokens", json::array({added(2'000'000'000, "<t>")}),
       "token id 2000000000 is too large"},
      {"/added_tokens", json::array({added(-1, "<t>")}), "added_tokens[0].id"},
      {"/added_tokens", json::array({added(14, std::string(600, 'x'))}), "has 600 bytes"},
      {"/added_tokens", json::array({7}), "added_tokens[0].id"},
      {"/added_tokens", "x", "added_tokens is not an array"},
      {"/model/vocab/a", -3, "model.vocab entry"},
      {"/model/vocab/a", 3'000'000'000u, "model.vocab entry"},
      {"/model/vocab/a", 1, "token id 1 comes twice"},
      {"/model/vocab/a", json::array({1}), "model.vocab entry"},
      {"/model/vocab/a", 1'999'999'999, "token id 1999999999 is too large"},
      {"/model/merges/1", json::array({"a"}), "model.merges[1]"},
      {"/model/merges/1", json::array({"a", "b", "c"}), "model.merges[1]"},
      {"/model/merges/1", 5, "model.merges[1]"},
      {"/model/merges/1", "abc", "merge 1 \"abc\""},
      {"/model/merges/1", "a b c", "merge 1 \"a b c\""},
      {"/model/merges/1", json::array({"a", "q"}), "merge 1 (\"a\" and \"q\")"},
      {"/model/merges/1", json::array({"b", "a"}), "merge 1 (\"b\" and \"a\")"},
      {"/model/merges", {{"a", "b"}}, "model.merges is not an array"},
      {"/model/merges", nullptr, "model.merges is not an array"},
      {"/model/vocab", json::array({"a"}), "model.vocab is not an object of tokens"},
      {"/model/vocab", json::object(), "model.vocab is not an object of tokens"},
      {"/model", "x", "no object \"model\""},
  };
  for (const Refused& value : cases) {
    std::string message =
        refusal([&](json& document) { document[json::json_pointer(value.pointer)] = value.value; });
    EXPECT_NE(message.find(value.message), std::string::npos)
        << value.pointer << " = " << value.value << ": " << message;
    EXPECT_TRUE(message.starts_with("tokenizer.json: ")) << message;
  }
}

TEST(TokenizerJson, BadPatternsAreNamed) {
  auto with = [](json pattern) {
    return refusal([&](json& document) {
      json split = {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}};
      document["pre_tokenizer"] = {
          {"type", "Sequence"}, {"pretokenizers", json::array({split, document["pre_tokenizer"]})}};
    });
  };
  EXPECT_NE(with({{"Regex", "(a"}}).find("not a valid pattern"), std::string::npos);
  EXPECT_NE(with({{"Glob", "a"}}).find("neither a Regex nor a String"), std::string::npos);
  EXPECT_NE(with(3).find("neither a Regex nor a String"), std::string::npos);
  EXPECT_EQ(with({{"Regex", "a"}}), "accepted");
}

TEST(TokenizerJson, TextThatIsNoTokenizer) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"), std::string("{}"),
        std::string("{\"model\": {\"vocab\": {\"a\": 0"), std::string("\xFF\xFE"),
        std::string("{\"model\": {\"vocab\": {\"a\": 1e99999}}}"), std::string(100'000, '['),
        std::string("{\"model\": {\"merges\": [[[\"a\"]]]}}"),
        std::string("{\"model\": {\"merges\": [[{}]]}}")}) {
    EXPECT_THROW(Tokenizer::from_json(text), Error) << text.substr(0, 50);
  }
  std::string whole = small_tokenizer().dump();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(Tokenizer::from_json(whole.substr(0, length)), Error) << length;
  }
}

TEST(TokenizerJson, LoadNamesThePath) {
  std::string missing = ORTHRUS_TEST_DATA "/no such tokenizer";
  try {
    Tokenizer::load(missing);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(missing), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace orthrus
