// Tokenizers of SentencePiece's kind: tokenizer.json with byte_fallback, and GGUF files of model
// "llama". compare_tokenizers.py has larger ones.

#include "text/space_marks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/gguf_builder.h"
#include "formats/test_files.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"

namespace orthrus {
namespace {

using nlohmann::json;
using testing::GgufBuilder;
using testing::TempDir;
using Ids = std::vector<int32_t>;

/// 3 + byte is the token of a byte; tokens of more than one character by falling score from here.
constexpr int32_t kFirst = 259;

struct Pieces {
  std::vector<std::string> longer = {"▁a", "ab", "▁ab", "▁▁", "bb", "é▁"};
  std::vector<std::string> characters = {"▁", "a", "b", "é"};

  std::vector<std::string> tokens() const {
    std::vector<std::string> all = {"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) {
      all.push_back(byte_token_name(static_cast<uint8_t>(byte)));
    }
    all.insert(all.end(), longer.begin(), longer.end());
    all.insert(all.end(), characters.begin(), characters.end());
    return all;
  }
};

json prepend() { return {{"type", "Prepend"}, {"prepend", "▁"}}; }
json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// As Llama 2's.
json llama2(const Pieces& pieces = {}) {
  json vocab = json::object();
  int32_t id = 0;
  for (const std::string& token : pieces.tokens()) vocab[token] = id++;
  json merges = json::array();
  for (const std::string& piece : pieces.longer) {
    for (size_t i = 1; i < piece.size(); ++i) {
      const json sides = json::array({piece.substr(0, i), piece.substr(i)});
      try {
        if (vocab.contains(sides[0].get<std::string>()) &&
            vocab.contains(sides[1].get<std::string>())) {
          merges.push_back(sides);
        }
      } catch (const json::exception&) {  // inside a character
      }
    }
  }
  json added = json::array();
  for (int32_t i = 0; i < 3; ++i) {
    added.push_back({{"id", i}, {"content", pieces.tokens()[static_cast<size_t>(i)]}});
    added.back().update({{"special", true}, {"normalized", false}});
  }
  return {{"added_tokens", added},
          {"normalizer",
           {{"type", "Sequence"}, {"normalizers", json::array({prepend(), replace(" ", "▁")})}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             json::array({{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}})}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             json::array({replace("▁", " "),
                          {{"type", "ByteFallback"}},
                          {{"type", "Fuse"}},
                          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}})}}},
          {"model",
           {{"type", "BPE"},
            {"byte_fallback", true},
            {"fuse_unk", true},
            {"unk_token", "<unk>"},
            {"vocab", vocab},
            {"merges", merges}}}};
}

json metaspace(const char* scheme, bool split) {
  json document = llama2();
  document["normalizer"] = nullptr;
  document["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
  return document;
}

Ids encode(const json& document, const std::string& text) {
  return Tokenizer::from_json(document.dump()).encode(text);
}

GgufBuilder gguf(const Pieces& pieces = {}) {
  std::vector<float> scores(259, 0);
  std::vector<int32_t> types(259, kByteToken);
  types[0] = kUnknownToken;
  types[1] = types[2] = kControlToken;
  for (size_t i = 0; i < pieces.longer.size() + pieces.characters.size(); ++i) {
    scores.push_back(-static_cast<float>(i));
    types.push_back(kNormalToken);
  }
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", pieces.tokens())
      .f32s("tokenizer.ggml.scores", scores)
      .i32s("tokenizer.ggml.token_type", types)
      .u32("tokenizer.ggml.bos_token_id", 1);
  return builder;
}

Tokenizer load(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  const GgufFile file(testing::as_bytes(bytes), "f");
  return Tokenizer::from_gguf(file.metadata());
}

constexpr int32_t kA = kFirst, kAb = kFirst + 1, kSpaceAb = kFirst + 2, kSpaces = kFirst + 3,
                  kBb = kFirst + 4, kSpace = kFirst + 6, kPlainA = kFirst + 7, kB = kFirst + 8,
                  kE = kFirst + 9;

TEST(SpaceMarks, BothFilesGiveTheSameIds) {
  const Tokenizer from_json = Tokenizer::from_json(llama2().dump());
  const Tokenizer from_gguf = load(gguf());
  const std::pair<const char*, Ids> cases[] = {
      {"a", {kA}},
      {"ab", {kSpaceAb}},  // "▁a", then "b"
      {" ab", {kSpace, kSpaceAb}},
      {"bab", {kSpace, kB, kAb}},
      {"a  bb", {kA, kSpaces, kBb}},
      {"", {}},
      {"aé b", {kA, kFirst + 5, kB}},
      {"▁a", {kSpace, kA}},  // a mark in a text is a space
      {"b\n世", {kSpace, kB, 3 + 10, 3 + 0xE4, 3 + 0xB8, 3 + 0x96}},
      {"<s>a</s> b<unk>", {1, kA, 2, kSpaces, kB, 0}},  // each text has a mark before it
      {"<0x41>", {kSpace, 63, 51, 123, 55, 52, 65}},    // text, not the token
  };
  for (const auto& [text, ids] : cases) {
    EXPECT_EQ(from_json.encode(text), ids) << text;
    EXPECT_EQ(from_gguf.encode(text), ids) << text;
  }
  for (const Tokenizer* tokenizer : {&from_json, &from_gguf}) {
    EXPECT_EQ(tokenizer->encode("a", true), (Ids{1, kA}));
    EXPECT_EQ(tokenizer->encode("a\xE4\xB8 b\xFF"),
              (Ids{kA, 3 + 0xE4, 3 + 0xB8, kSpace, kB, 3 + 0xFF}))
        << "invalid UTF-8";
  }
  EXPECT_EQ(load(gguf().boolean("tokenizer.ggml.add_bos_token", false)).encode("a", true),
            (Ids{kA}));
}

TEST(SpaceMarks, Decodes) {
  const Tokenizer tokenizer = Tokenizer::from_json(llama2().dump());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a  b世é")), "a  b世é");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("  a")), "  a");
  EXPECT_EQ(tokenizer.decode(Ids{1, kA, 2}), "<s> a</s>");
  EXPECT_EQ(tokenizer.decode(Ids{1, kA, 2}, true), "a");
  EXPECT_EQ(tokenizer.token_bytes(kSpaceAb), " ab");
  EXPECT_EQ(tokenizer.token_bytes(3 + 0x0A), "\n");
  EXPECT_EQ(tokenizer.token_id("▁ab"), kSpaceAb);
  EXPECT_EQ(tokenizer.token_id("<s>"), 1);
  EXPECT_TRUE(tokenizer.is_special(0) && tokenizer.is_special(1) && !tokenizer.is_special(kA));
  EXPECT_EQ(tokenizer.max_token_bytes(), 6u) << "of the token's text: <0x0A>, ▁▁";
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(kA), " a") << "an answer goes on after its prompt";
  EXPECT_EQ(stream.push(3 + 0xE4), "");
  EXPECT_EQ(stream.push(3 + 0xB8), "");
  EXPECT_EQ(stream.push(3 + 0x96), "世");
  EXPECT_EQ(stream.push(3 + 0xE4), "");
  EXPECT_EQ(stream.push(kA), "\uFFFD a");
  EXPECT_EQ(load(gguf()).decode(Ids{kA, 3 + 0x21}), "a!");
}

TEST(SpaceMarks, WithoutAMarkBeforeTheText) {
  json document = llama2();
  document["normalizer"] = replace(" ", "▁");
  document["decoder"]["decoders"].erase(3);
  const Tokenizer from_json = Tokenizer::from_json(document.dump());
  const Tokenizer from_gguf = load(gguf().boolean("tokenizer.ggml.add_space_prefix", false));
  for (const Tokenizer* tokenizer : {&from_json, &from_gguf}) {
    EXPECT_EQ(tokenizer->encode("ab a"), (Ids{kAb, kA}));
    EXPECT_EQ(tokenizer->decode(Ids{kA}), " a");
  }
}

TEST(SpaceMarks, Metaspace) {
  EXPECT_EQ(encode(metaspace("first", false), "a<s>ab"), (Ids{kA, 1, kAb}));
  EXPECT_EQ(encode(metaspace("first", false), "<s>a"), (Ids{1, kPlainA}));
  EXPECT_EQ(encode(metaspace("first", false), " a"), (Ids{kA})) << "the space is there";
  EXPECT_EQ(encode(metaspace("always", false), "a<s>a"), (Ids{kA, 1, kA}));
  EXPECT_EQ(encode(metaspace("never", false), "ab a"), (Ids{kAb, kA}));
  EXPECT_EQ(encode(metaspace("never", false), "é b"), (Ids{kFirst + 5, kB}));
  EXPECT_EQ(encode(metaspace("never", true), "é b"), (Ids{kE, kSpace, kB})) << "not over a mark";
  EXPECT_EQ(encode(metaspace("never", true), "a  a"), (Ids{kPlainA, kSpace, kA}));
}

TEST(SpaceMarks, AddedTokensOfNormalisedText) {
  json document = llama2();
  document["added_tokens"].push_back(
      {{"id", 300}, {"content", "b b"}, {"special", false}, {"normalized", true}});
  // As in the `tokenizers` library the token gets a mark before it too.
  EXPECT_EQ(encode(document, "b b"), (Ids{300}));
  EXPECT_EQ(encode(document, "a b b"), (Ids{kA, 300}));
  EXPECT_EQ(encode(document, "ab b"), (Ids{kSpaceAb, kSpace, kB}));
}

TEST(SpaceMarks, ScoresThatTie) {
  const auto merge_texts = [](const std::vector<ScoredPiece>& pieces) {
    std::vector<std::string> texts;
    for (const auto& [left, right, rank] : merges_by_score(pieces)) {
      texts.push_back(std::to_string(rank) + std::string(left) + "+" + std::string(right));
    }
    return texts;
  };
  EXPECT_EQ(merge_texts({{"a", -9}, {"aa", -2}, {"aaa", -1}, {"b", -9}, {"ab", -1}, {"x", 0}}),
            (std::vector<std::string>{"1a+aa", "1aa+a", "1a+b", "2a+a"}));
  Pieces pieces;
  pieces.longer = {"aaa", "aa"};
  pieces.characters = {"▁", "a", "b"};
  EXPECT_EQ(load(gguf(pieces)).encode("baaaa"), (Ids{kFirst + 2, kFirst + 4, kFirst, kFirst + 3}));
}

TEST(SpaceMarks, WrittenAsGguf) {
  const auto convert = [](const json& document) {
    TempDir dir;
    dir.write("tokenizer.json", document.dump());
    ModelConfig config;
    config.vocab_size = 280;
    GgufPairs pairs;
    write_tokenizer_gguf(dir.path(), config, pairs);
    GgufWriter(dir.path() + "/out.gguf", pairs, {}).commit();
    return Tokenizer::load(dir.path() + "/out.gguf");
  };
  json document = llama2();
  document["added_tokens"].push_back({{"id", 270}, {"content", "<call>"}, {"normalized", false}});
  const Tokenizer original = Tokenizer::from_json(document.dump());
  const Tokenizer written = convert(document);
  for (const char* text : {"ab bab  a世é b", "", "<s> a<call>b</s>", "bbbb ab\n▁"}) {
    EXPECT_EQ(written.encode(text, true), original.encode(text, true)) << text;
    const Ids ids = original.encode(text);
    EXPECT_EQ(written.decode(ids, true), original.decode(ids, true)) << text;
  }
  EXPECT_FALSE(written.has_token(275)) << "a row without a token";
  EXPECT_INPUT_ERROR(convert(metaspace("first", false)), "no form for where it marks spaces");
  json unmerged = llama2();
  unmerged["model"]["merges"].erase(1);
  EXPECT_INPUT_ERROR(convert(unmerged), "not those that scores of its tokens make");
  json apart = llama2();
  apart["model"]["merges"].push_back(apart["model"]["merges"][0]);
  EXPECT_INPUT_ERROR(convert(apart), "not those that scores of its tokens make");
}

TEST(SpaceMarks, WhatIsNotSupportedIsNamed) {
  const auto refuse = [](const char* pointer, const json& value, const char* part) {
    json document = llama2();
    document[json::json_pointer(pointer)] = value;
    EXPECT_INPUT_ERROR(encode(document, "a"), part);
  };
  refuse("/normalizer", {{"type", "NFC"}}, "normalizer \"NFC\"");
  refuse("/normalizer", nullptr, "neither normalizer nor pre_tokenizer marks the spaces");
  refuse("/normalizer/normalizers/0/prepend", " ", "normalizer.prepend \" \"");
  refuse("/normalizer/normalizers/1/content", "_", "normalizer.content \"_\"");
  refuse("/normalizer/normalizers/2", prepend(), "expected Prepend and Replace");
  refuse("/pre_tokenizer", {{"type", "Metaspace"}}, "pre_tokenizer \"Metaspace\"");
  refuse("/decoder", {{"type", "Metaspace"}}, "decoder \"Metaspace\"");
  refuse("/decoder/decoders/0/content", "_", "decoder.content \"_\"");
  refuse("/decoder/decoders/3/start", 2, "expected a start of 0 or 1");
  refuse("/model/merges/0", json::array({"a", "世"}), "is not made of tokens of the vocabulary");
  json unnamed = llama2();
  unnamed["model"]["vocab"].erase("<0x41>");
  EXPECT_INPUT_ERROR(encode(unnamed, "a"), "no token <0x41>, expected one for each of the 256");
  json scheme = metaspace("last", true);
  EXPECT_INPUT_ERROR(encode(scheme, "a"), "prepend_scheme \"last\"");

  GgufBuilder unscored;
  unscored.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", Pieces().tokens());
  EXPECT_INPUT_ERROR(load(unscored), "no tokenizer.ggml.scores");
  EXPECT_INPUT_ERROR(load(unscored.f32s("tokenizer.ggml.scores", {1, 2})),
                     "2 scores and 0 types, expected as many as tokenizer.ggml.tokens: 269");
}

}  // namespace
}  // namespace orthrus
