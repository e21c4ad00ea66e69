#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "demo_model.h"
#include "gguf_builder.h"
#include "test_files.h"

namespace orthrus {
namespace {

using testing::as_bytes;
using testing::GgufBuilder;
using testing::TempDir;

GgufFile open(const std::string& bytes) { return {as_bytes(bytes), "f"}; }

std::string error_of(const std::string& bytes) {
  return testing::input_error([&] { open(bytes); });
}

#define EXPECT_REFUSED(bytes, part)                          \
  do {                                                       \
    const std::string text_ = error_of(bytes);               \
    EXPECT_NE(text_.find(part), std::string::npos) << text_; \
  } while (false)

std::string floats(size_t count) { return std::string(count * 4, '\1'); }

TEST(Gguf, MetadataOfEveryType) {
  for (uint32_t version : {2u, 3u}) {
    const std::string bytes = GgufBuilder(version)
                                  .text("t", "hello")
                                  .u32("u", 4000000000u)
                                  .u64("w", uint64_t{1} << 62)
                                  .i8("c", -5)
                                  .u16("h", 65535)
                                  .i32("i", -7)
                                  .f32("f", 0.5f)
                                  .f64("d", 0.25)
                                  .boolean("b", true)
                                  .texts("tt", {"a", "", "ccc"})
                                  .i32s("ii", {1, -2})
                                  .f32s("ff", {1.5f})
                                  .pair("bb", 9, std::string("\7\0\0\0\2\0\0\0\0\0\0\0\1\0", 14))
                                  .build();
    GgufFile file = open(bytes);
    const GgufMetadata& m = file.metadata();
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(m.entries().size(), 13u);
    EXPECT_EQ(m.get<std::string_view>("t"), "hello");
    EXPECT_EQ(m.get<int64_t>("u"), 4000000000);
    EXPECT_EQ(m.get<int64_t>("w"), int64_t{1} << 62);
    EXPECT_EQ(m.get<int64_t>("c"), -5);
    EXPECT_EQ(m.get<int64_t>("h"), 65535);
    EXPECT_EQ(m.get<int64_t>("i"), -7);
    EXPECT_EQ(m.get<double>("i"), -7.0);
    EXPECT_EQ(m.get<double>("f"), 0.5);
    EXPECT_EQ(m.get<double>("d"), 0.25);
    EXPECT_EQ(m.get<bool>("b"), true);
    EXPECT_EQ(m.get<std::vector<std::string_view>>("tt"),
              (std::vector<std::string_view>{"a", "", "ccc"}));
    EXPECT_EQ(m.get<std::vector<int64_t>>("ii"), (std::vector<int64_t>{1, -2}));
    EXPECT_EQ(m.get<std::vector<double>>("ff"), std::vector<double>{1.5});
    EXPECT_EQ(m.get<std::vector<bool>>("bb"), (std::vector<bool>{true, false}));
    EXPECT_EQ(m.get<int64_t>("none"), std::nullopt);
    EXPECT_INPUT_ERROR(m.get<int64_t>("t"), "metadata t is not an integer");
    EXPECT_INPUT_ERROR(m.get<std::string_view>("u"), "metadata u is not a string");
  }
}

TEST(Gguf, TensorsAreNamedAndShapedAsInHuggingFace) {
  const std::string bytes = GgufBuilder()
                                .text("general.architecture", "qwen3")
                                .tensor("token_embd.weight", GgufBuilder::kQ8_0, {32, 3},
                                        std::string(34, 'a') + std::string(68, 'b'))
                                .tensor("blk.12.attn_q_diff.weight", 0, {2, 1}, floats(2))
                                .tensor("blk.0.attn_q_norm_diff.weight", 0, {1}, floats(1))
                                .tensor("blk.0.ffn_down.weight", 1, {2, 1}, floats(1))
                                .tensor("blk.0.attn_output.bias", 30, {2}, floats(1))
                                .tensor("output_norm.weight", 0, {1}, floats(1))
                                .tensor("something.else", 0, {1}, floats(1))
                                .build();
  GgufFile file = open(bytes);
  const int64_t shape[] = {3, 32};
  const TensorInfo& embedding = file.require("model.embed_tokens.weight", shape);
  EXPECT_EQ(embedding.type, TensorType::kQ8_0);
  ASSERT_EQ(embedding.data.size(), 102u);
  EXPECT_EQ(static_cast<char>(embedding.data[33]), 'a');
  EXPECT_EQ(static_cast<char>(embedding.data[34]), 'b');
  for (const char* name :
       {"model.layers.12.self_attn.q_proj_diff.weight",
        "model.layers.0.self_attn.q_norm_diff.weight", "model.layers.0.mlp.down_proj.weight",
        "model.layers.0.self_attn.o_proj.bias", "model.norm.weight", "something.else"}) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->interleaved_heads, 0);
  }
}

TEST(Gguf, LlamaFilesInterleaveRowsOfQAndK) {
  const std::string bytes = GgufBuilder()
                                .text("general.architecture", "llama")
                                .u32("llama.attention.head_count", 4)
                                .u32("llama.attention.head_count_kv", 2)
                                .tensor("blk.0.attn_q.weight", 0, {1, 16}, floats(16))
                                .tensor("blk.0.attn_k.weight", 0, {1, 8}, floats(8))
                                .tensor("blk.0.attn_k_diff.weight", 0, {1, 8}, floats(8))
                                .tensor("blk.0.attn_v.weight", 0, {1, 8}, floats(8))
                                .tensor("blk.0.attn_q_norm.weight", 0, {4}, floats(4))
                                .build();
  GgufFile file = open(bytes);
  auto heads = [&](const char* part) {
    return file.find("model.layers.0.self_attn." + std::string(part))->interleaved_heads;
  };
  EXPECT_EQ(heads("q_proj.weight"), 4);
  EXPECT_EQ(heads("k_proj.weight"), 2);
  EXPECT_EQ(heads("k_proj_diff.weight"), 2);
  EXPECT_EQ(heads("v_proj.weight"), 0);
  EXPECT_EQ(heads("q_norm.weight"), 0);
}

TEST(Gguf, HeadsThatDoNotDivideRows) {
  auto with_heads = [](uint32_t heads) {
    return GgufBuilder()
        .text("general.architecture", "llama")
        .u32("llama.attention.head_count", heads)
        .tensor("blk.0.attn_q.weight", 0, {1, 16}, floats(16))
        .build();
  };
  EXPECT_EQ(open(with_heads(8)).tensors()[0].interleaved_heads, 8);
  for (uint32_t heads : {0u, 3u, 16u, 4294967295u}) {
    EXPECT_REFUSED(with_heads(heads), "do not divide 16 rows");
  }
}

TEST(Gguf, NamesGoBothWays) {
  for (const char* name : {"token_embd.weight", "mask_embd.weight", "output.weight",
                           "blk.12.attn_q_norm_diff.weight", "blk.0.attn_output_diff.weight",
                           "blk.3.ffn_down.bias", "rope_freqs.weight", "blk.x.attn_q.weight"}) {
    EXPECT_EQ(ggml_tensor_name(hf_tensor_name(name)), name);
  }
  EXPECT_EQ(ggml_tensor_name("model.layers.7.self_attn.q_proj_diff.weight"),
            "blk.7.attn_q_diff.weight");
  for (TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kQ4_0}) {
    EXPECT_EQ(tensor_type_from_ggml(ggml_type_number(type)), type);
  }
}

TEST(Gguf, UnreadableTypesAreNamedWhenAskedFor) {
  const std::string bytes =
      GgufBuilder()
          .tensor("blk.0.ffn_up.weight", GgufBuilder::kIq2Xxs, {256, 1}, std::string(66, 'x'))
          .tensor("output.weight", 77, {1}, floats(1))
          .build();
  GgufFile file = open(bytes);
  EXPECT_TRUE(file.tensors().empty());
  const int64_t shape[] = {1, 256};
  EXPECT_INPUT_ERROR(file.require("model.layers.0.mlp.up_proj.weight", shape),
                     "tensor model.layers.0.mlp.up_proj.weight has type IQ2_XXS");
  EXPECT_INPUT_ERROR(file.require("lm_head.weight", shape), "has type number 77");
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string bytes = GgufBuilder()
                                .text("general.architecture", "qwen3")
                                .texts("tokenizer.ggml.tokens", {"a", "bc"})
                                .f32s("scores", {1, 2})
                                .u64("n", 1)
                                .tensor("token_embd.weight", 0, {4, 2}, floats(8))
                                .tensor("output_norm.weight", 0, {8}, floats(8))
                                .build();
  EXPECT_EQ(open(bytes).tensors().size(), 2u);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);
    EXPECT_FALSE(error_of(cut).empty()) << length;
  }
}

TEST(Gguf, HostileCounts) {
  auto header = [](uint64_t tensors, uint64_t keys) {
    return "GGUF" + GgufBuilder::bytes(uint32_t{3}) + GgufBuilder::bytes(tensors) +
           GgufBuilder::bytes(keys);
  };
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(open(header(0, 0)).tensors().empty());
  EXPECT_REFUSED(header(kMax, 0), "tensors, expected at most");
  EXPECT_REFUSED(header(0, kMax), "metadata keys, expected at most");
  EXPECT_REFUSED(header(1000, 0), "truncated");
  EXPECT_REFUSED(header(0, 1) + GgufBuilder::bytes(kMax), "truncated");
  EXPECT_REFUSED(header(0, 1) + GgufBuilder::bytes(uint64_t{0}), "key of 0 bytes");
  for (uint32_t type = 0; type < 13; ++type) {
    const std::string array =
        GgufBuilder::bytes(type) + GgufBuilder::bytes(kMax) + std::string(64, '\0');
    EXPECT_REFUSED(GgufBuilder().pair("a", 9, array).build(),
                   type == 9 ? "array of type 9" : "truncated");
  }
  EXPECT_REFUSED(GgufBuilder().pair("a", 13, "").build(), "unknown type 13");
  EXPECT_REFUSED(GgufBuilder().u64("a", kMax).build(), "expected at most 2^63-1");
  EXPECT_REFUSED(GgufBuilder().u32("a", 1).u32("a", 2).build(), "twice");
}

TEST(Gguf, HostileTensors) {
  auto entry = [](const std::vector<uint64_t>& sizes, uint32_t type = 0, uint64_t offset = 0) {
    return GgufBuilder().tensor_at("x", type, sizes, offset).raw_data(floats(32)).build();
  };
  EXPECT_EQ(open(entry({8, 4})).tensors().size(), 1u);
  EXPECT_REFUSED(entry({}), "0 dimensions");
  EXPECT_REFUSED(entry({1, 1, 1, 1, 1}), "5 dimensions");
  EXPECT_REFUSED(entry({0}), "size 0");
  EXPECT_REFUSED(entry({uint64_t{1} << 63}), "size 9223372036854775808");
  EXPECT_REFUSED(entry({uint64_t{1} << 32, uint64_t{1} << 32}), "overflows");
  EXPECT_REFUSED(entry({(uint64_t{1} << 62) + 1}), "overflows");
  EXPECT_REFUSED(entry({33}), "132 bytes, 128 are left");
  EXPECT_REFUSED(entry({31}, 2), "whole Q4_0 blocks");
  EXPECT_REFUSED(entry({1}, 0, 4), "not a multiple of 32");
  EXPECT_REFUSED(entry({1}, 0, 128), "offset 128 of 128");
  EXPECT_REFUSED(entry({1}, 0, ~uint64_t{31}), "truncated");
  std::string many = GgufBuilder().zeros("x", {1}).build();
  const size_t dimensions = many.find('x') + 1;  // 2^32 - 1 of them
  many.replace(dimensions, 4, "\xff\xff\xff\xff");
  EXPECT_REFUSED(many, "4294967295 dimensions");
  EXPECT_REFUSED(GgufBuilder().zeros("x", {1}).zeros("x", {1}).build(), "twice");
  EXPECT_REFUSED(GgufBuilder().zeros("x", {16}).tensor_at("y", 0, {1}, 32).build(),
                 "tensors x and y overlap");
  for (uint32_t alignment : {0u, 3u, 48u, 4294967295u}) {
    EXPECT_REFUSED(GgufBuilder().u32("general.alignment", alignment).zeros("x", {1}).build(),
                   "power of two");
  }
}

TEST(Gguf, OtherVersionsAndFiles) {
  EXPECT_REFUSED(GgufBuilder(1).build(), "version 1");
  EXPECT_REFUSED(GgufBuilder(0x03000000).build(), "expected 2 or 3 (little endian)");
  EXPECT_REFUSED("GGML", "not a GGUF file");
}

TEST(Gguf, SplitFilesOpenFromAnyPart) {
  TempDir dir;
  auto part = [](uint32_t number, const char* tensor) {
    GgufBuilder builder;
    builder.u32("split.no", number).u32("split.count", 2).i32("split.tensors.count", 2);
    if (number == 0) builder.text("general.architecture", "qwen3");
    return builder.zeros(tensor, {1}).build();
  };
  const std::string one = dir.write("m-00001-of-00002.gguf", part(0, "token_embd.weight"));
  const std::string two = dir.write("m-00002-of-00002.gguf", part(1, "output_norm.weight"));
  for (const std::string& path : {one, two}) {
    GgufFile file(path);
    EXPECT_EQ(file.tensors().size(), 2u);
    EXPECT_NE(file.find("model.norm.weight"), nullptr);
    EXPECT_EQ(file.metadata().get<std::string_view>("general.architecture"), "qwen3");
    file.drop(file.tensors()[1]);
  }
  dir.write("m-00002-of-00002.gguf", part(1, "token_embd.weight"));
  EXPECT_INPUT_ERROR(GgufFile{one}, "twice");
  dir.write("m-00002-of-00002.gguf", GgufBuilder().build());
  EXPECT_INPUT_ERROR(GgufFile{one}, "1 tensors in all parts, expected 2");
  std::filesystem::remove(two);
  EXPECT_INPUT_ERROR(GgufFile{one}, "m-00002-of-00002.gguf");
  const std::string alone = dir.write("alone.gguf", part(0, "token_embd.weight"));
  EXPECT_INPUT_ERROR(GgufFile{alone}, "one of 2 parts");
  const std::string zero = dir.write("m-00000-of-00002.gguf", part(0, "token_embd.weight"));
  EXPECT_INPUT_ERROR(GgufFile{zero}, "part 0 of 2");
}

TEST(Gguf, DemoModel) {
  GgufFile file(testing::demo_model());
  EXPECT_EQ(file.tensors().size(), 272u);
  const int64_t embedding[] = {49152, 576}, k[] = {192, 576};
  EXPECT_EQ(file.require("model.embed_tokens.weight", embedding).type, TensorType::kQ8_0);
  const TensorInfo& tensor = file.require("model.layers.29.self_attn.k_proj.weight", k);
  EXPECT_EQ(tensor.type, TensorType::kQ4_1);
  EXPECT_EQ(tensor.interleaved_heads, 3);
  EXPECT_EQ(tensor.data.size(), 192u * 576 / 32 * 20);
}

}  // namespace
}  // namespace orthrus
