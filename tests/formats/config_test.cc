#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/hf_config.h"
#include "formats/rope_scaling.h"
#include "gguf_builder.h"
#include "test_files.h"

namespace orthrus {
namespace {

using nlohmann::json;
using testing::GgufBuilder;

/// Qwen3 0.6B as published.
json qwen3() {
  return json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "num_attention_heads": 16,
    "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "use_cache": true, "use_sliding_window": false,
    "vocab_size": 151936})");
}

/// Llama 3.2 1B as published.
json llama3() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "mlp_bias": false, "num_attention_heads": 32,
    "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": true, "vocab_size": 128256})");
}

ModelConfig parse(const json& config, const std::string& generation = "", bool lm_head = true) {
  const std::string text = config.dump();
  return parse_hf_config({"dir/model", text, generation, lm_head});
}

/// The error of `config` with `key` set to `value`.
std::string error_with(json config, const std::string& key, const json& value) {
  config[key] = value;
  return testing::input_error([&] { parse(config); });
}

#define EXPECT_KEY_ERROR(config, key, value, part)               \
  do {                                                           \
    const std::string text_ = error_with(config, key, value);    \
    EXPECT_EQ(text_.find("dir/model/config.json"), 0u) << text_; \
    EXPECT_NE(text_.find(part), std::string::npos) << text_;     \
  } while (false)

TEST(HfConfig, Qwen3) {
  const ModelConfig c = parse(qwen3());
  EXPECT_EQ(c.architecture, Architecture::kQwen3);
  EXPECT_EQ(c.name, "model");
  EXPECT_EQ(c.vocab_size, 151936);
  EXPECT_EQ(c.hidden_size, 1024);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.num_layers, 28);
  EXPECT_EQ(c.num_heads, 16);
  EXPECT_EQ(c.num_kv_heads, 8);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.max_position_embeddings, 40960);
  EXPECT_EQ(c.rms_norm_eps, 1e-6);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_TRUE(c.rope.divisors.empty());
  EXPECT_TRUE(c.qk_norm);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_FALSE(c.attention_bias || c.attention_out_bias || c.mlp_bias || c.is_orthrus);
  EXPECT_EQ(c.eos_token_ids, std::vector<int32_t>{151645});
  EXPECT_EQ(c.bos_token_id, 151643);
}

TEST(HfConfig, OrthrusByModelTypeOrArchitecture) {
  json config = qwen3();
  config["block_size"] = 32;
  EXPECT_FALSE(parse(config).is_orthrus);
  config["mask_token_id"] = 151669;
  EXPECT_TRUE(parse(config).is_orthrus);  // exports that keep the base's names
  config["architectures"] = {"OrthrusLM"};
  for (const char* type : {"qwen3", "orthrus"}) {
    config["model_type"] = type;
    const ModelConfig c = parse(config);
    EXPECT_EQ(c.architecture, Architecture::kQwen3);
    EXPECT_TRUE(c.is_orthrus && c.qk_norm);
    EXPECT_EQ(c.block_size, 32);
    EXPECT_EQ(c.mask_token_id, 151669);
  }
  EXPECT_KEY_ERROR(config, "block_size", 0, "block_size is 0, expected 2 to 1024");
  EXPECT_KEY_ERROR(config, "block_size", 1, "block_size is 1");
  EXPECT_KEY_ERROR(config, "block_size", 1025, "block_size is 1025");
  EXPECT_KEY_ERROR(config, "block_size", nullptr, "no \"block_size\"");
  EXPECT_KEY_ERROR(config, "mask_token_id", 151936, "mask_token_id is 151936");
  EXPECT_KEY_ERROR(config, "mask_token_id", -1, "mask_token_id is -1");
}

TEST(HfConfig, RopeParametersOfTransformers5) {
  json config = qwen3();
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_theta", 1000000}, {"rope_type", "default"}};
  EXPECT_EQ(parse(config).rope.theta, 1e6);
  EXPECT_TRUE(parse(config).rope.divisors.empty());
  config["rope_parameters"] = {{"rope_theta", 1e4}, {"rope_type", "linear"}, {"factor", 4}};
  EXPECT_EQ(parse(config).rope.divisors, std::vector<float>(64, 4.0f));
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};  // added by a person
  EXPECT_EQ(parse(config).rope.divisors, std::vector<float>(64, 2.0f));
  EXPECT_EQ(parse(config).rope.theta, 1e4);
  config.erase("rope_scaling");
  config["rope_parameters"]["partial_rotary_factor"] = 0.5;
  EXPECT_INPUT_ERROR(parse(config), "partial_rotary_factor");
}

TEST(HfConfig, Llama3Scaling) {
  const ModelConfig c = parse(llama3());
  EXPECT_EQ(c.architecture, Architecture::kLlama);
  EXPECT_FALSE(c.qk_norm);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{128001, 128008, 128009}));
  ASSERT_EQ(c.rope.divisors.size(), 32u);
  // Wavelength of pair i: 2 pi 500000^(i/32). Below 2048 (up to pair 14) nothing changes, above
  // 8192 (from pair 18) all is 32 times slower; pair 16: 4442.88, s = (8192/4442.88 - 1) / 3.
  EXPECT_EQ(c.rope.divisors[0], 1.0f);
  EXPECT_EQ(c.rope.divisors[14], 1.0f);
  EXPECT_EQ(c.rope.divisors[18], 32.0f);
  EXPECT_EQ(c.rope.divisors[31], 32.0f);
  const double s = (8192 / 4442.8829 - 1) / 3;
  EXPECT_NEAR(c.rope.divisors[16], 1 / ((1 - s) / 32 + s), 1e-4);
}

// What the model card of Qwen3 says to set for 131,072 tokens. The divisors here and below come
// from a numpy copy of the formulas of transformers, in float32.
json qwen3_yarn() {
  json config = qwen3();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  return config;
}

/// The divisors of these pairs.
void expect_divisors(const RopeConfig& rope, const std::map<size_t, double>& expected) {
  for (const auto& [pair, divisor] : expected) {
    EXPECT_NEAR(static_cast<double>(rope.divisors.at(pair)), divisor, 2e-6 * divisor)
        << "pair " << pair;
  }
}

TEST(HfConfig, YarnOfQwen3) {
  const ModelConfig c = parse(qwen3_yarn());
  ASSERT_EQ(c.rope.divisors.size(), 64u);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(c.rope.divisors[i], 1.0f) << i;
  for (size_t i = 40; i < 64; ++i) EXPECT_EQ(c.rope.divisors[i], 4.0f) << i;
  expect_divisors(c.rope, {{24, 1.046154}, {30, 1.446808}, {36, 2.344827}, {39, 3.4}});
  EXPECT_NEAR(c.rope.attention_factor, 1.138629436111989, 1e-12);
  EXPECT_EQ(c.max_position_embeddings, 131072);
}

TEST(HfConfig, YarnWithBordersThatAreNotWholePairs) {
  json config = qwen3_yarn();
  config["rope_scaling"]["truncate"] = false;
  expect_divisors(parse(config).rope,
                  {{23, 1}, {24, 1.019238}, {30, 1.426865}, {36, 2.377841}, {39, 3.566262}});
}

TEST(HfConfig, YarnParameters) {
  json config = qwen3_yarn();
  config["head_dim"] = 64;
  config["rope_theta"] = 10000;
  config["rope_scaling"] = {{"type", "yarn"}, {"factor", 2.5}, {"beta_fast", 16}, {"beta_slow", 2}};
  config["rope_scaling"]["original_max_position_embeddings"] = 4096;
  const ModelConfig c = parse(config);
  expect_divisors(c.rope, {{12, 1}, {16, 1.363636}, {20, 2.142857}, {23, 2.5}, {31, 2.5}});
  EXPECT_NEAR(c.rope.attention_factor, 1.0916290731874154, 1e-12);
  EXPECT_EQ(c.max_position_embeddings, 40960) << "more than 2.5 * 4096";

  const auto attention = [&](const json& more) {
    json changed = qwen3_yarn();
    changed["rope_scaling"].update(more);
    return parse(changed).rope.attention_factor;
  };
  EXPECT_EQ(attention({{"attention_factor", 0.75}}), 0.75);
  // (0.1 * 0.707 * ln 4 + 1) / (0.1 * 0.5 * ln 4 + 1), as DeepSeek-V2 writes it.
  EXPECT_NEAR(attention({{"mscale", 0.707}, {"mscale_all_dim", 0.5}}), 1.0268358, 1e-6);
  EXPECT_EQ(attention({{"mscale", 1}, {"mscale_all_dim", 1}}), 1);
  EXPECT_NEAR(attention({{"mscale", 2}}), 1.1386294, 1e-6) << "one alone does not count";
  EXPECT_EQ(attention({{"factor", 1}}), 1);
}

TEST(HfConfig, YarnFactorsThatAreNotThere) {
  json config = qwen3_yarn();
  config["rope_scaling"].erase("factor");
  EXPECT_EQ(parse(config).rope.yarn->factor, 1.25) << "max_position_embeddings / 32768";
  config["rope_scaling"].erase("original_max_position_embeddings");
  EXPECT_INPUT_ERROR(parse(config), "rope_scaling: no \"factor\"");
  config["rope_scaling"]["factor"] = 2;
  EXPECT_EQ(parse(config).rope.yarn->original_context, 40960);
  EXPECT_EQ(parse(config).max_position_embeddings, 81920);
}

TEST(HfConfig, YarnOutOfRange) {
  const auto expect_error = [](const char* key, const json& value, const char* part) {
    json config = qwen3_yarn();
    config["rope_scaling"][key] = value;
    EXPECT_INPUT_ERROR(parse(config), part);
  };
  expect_error("factor", 0.5, "\"factor\" is 0.5, expected 1 to");
  expect_error("factor", "4", "\"factor\" is not a number");
  expect_error("factor", 1e6, "factor times original context is 32768000000, expected 1 to");
  expect_error("original_max_position_embeddings", 0, "the original context is 0, expected 1 to");
  expect_error("original_max_position_embeddings", 5, "leave no pair between them");
  expect_error("beta_fast", 0.5, "beta_fast is 0.5, expected 1 to");
  expect_error("beta_slow", -1, "\"beta_slow\" is -1");
  expect_error("attention_factor", 0, "\"attention_factor\" is 0, expected 0.001 to");
  expect_error("truncate", 1, "\"truncate\" is not true or false");
}

TEST(HfConfig, ScalingsThatAreNotSupported) {
  for (const char* type : {"dynamic", "longrope", "su"}) {
    EXPECT_KEY_ERROR(llama3(), "rope_scaling", (json{{"rope_type", type}, {"factor", 2}}),
                     "is not supported, expected default, linear, llama3 or yarn");
  }
  EXPECT_KEY_ERROR(llama3(), "rope_scaling", (json{{"type", "linear"}, {"factor", 0}}),
                   "\"factor\" is 0");
  EXPECT_KEY_ERROR(llama3(), "rope_scaling",
                   (json{{"type", "llama3"}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
                   "not above");
  EXPECT_KEY_ERROR(llama3(), "rope_scaling", "linear", "not a JSON object");
}

TEST(HfConfig, Qwen2HasBiasesOfQKAndV) {
  json config = qwen3();
  config["model_type"] = "qwen2";
  config.erase("head_dim");
  const ModelConfig c = parse(config);
  EXPECT_EQ(c.architecture, Architecture::kQwen2);
  EXPECT_TRUE(c.attention_bias);
  EXPECT_FALSE(c.attention_out_bias || c.qk_norm);
  EXPECT_EQ(c.head_dim, 64);
  json biased = llama3();
  biased["attention_bias"] = biased["mlp_bias"] = true;
  EXPECT_TRUE(parse(biased).attention_bias && parse(biased).attention_out_bias &&
              parse(biased).mlp_bias);
}

TEST(HfConfig, TyingDefaultsToWhatIsStored) {
  json config = llama3();
  config.erase("tie_word_embeddings");
  EXPECT_FALSE(parse(config, "", true).tie_word_embeddings);
  EXPECT_TRUE(parse(config, "", false).tie_word_embeddings);
  config["tie_word_embeddings"] = true;
  EXPECT_TRUE(parse(config, "", true).tie_word_embeddings);
}

TEST(HfConfig, GenerationConfig) {
  const ModelConfig c = parse(qwen3(),
                              R"({"eos_token_id": [151645, 151643], "do_sample": true,
      "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": null, "use_cache": false})");
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{151645, 151643}));
  EXPECT_TRUE(c.sampling.do_sample);
  EXPECT_EQ(c.sampling.temperature, 0.6);
  EXPECT_EQ(c.sampling.top_k, 20);
  EXPECT_EQ(c.sampling.top_p, 0.95);
  EXPECT_EQ(c.sampling.min_p, std::nullopt);
  EXPECT_EQ(parse(qwen3(), R"({"eos_token_id": 7})").eos_token_ids, std::vector<int32_t>{7});
  EXPECT_EQ(parse(qwen3(), "{}").eos_token_ids, std::vector<int32_t>{151645});
  const std::string where = "dir/model/generation_config.json";
  EXPECT_INPUT_ERROR(parse(qwen3(), R"({"top_p": 1.5})"), where + ": \"top_p\" is 1.5");
  EXPECT_INPUT_ERROR(parse(qwen3(), R"({"top_k": -1})"), where);
  EXPECT_INPUT_ERROR(parse(qwen3(), R"({"temperature": "hot"})"), where);
  EXPECT_INPUT_ERROR(parse(qwen3(), R"({"eos_token_id": [151936]})"), where);
  EXPECT_INPUT_ERROR(parse(qwen3(), "[]"), where);
  EXPECT_INPUT_ERROR(parse(qwen3(), "{"), where + ": not valid JSON");
}

TEST(HfConfig, RangesAndTypes) {
  EXPECT_KEY_ERROR(qwen3(), "hidden_size", 0, "hidden_size is 0, expected 1 to 1048576");
  EXPECT_KEY_ERROR(qwen3(), "hidden_size", uint64_t{1} << 63, "\"hidden_size\" is not a whole");
  EXPECT_KEY_ERROR(qwen3(), "hidden_size", 1024.0, "\"hidden_size\" is not a whole number");
  EXPECT_KEY_ERROR(qwen3(), "hidden_size", true, "\"hidden_size\" is not a whole number");
  EXPECT_KEY_ERROR(qwen3(), "hidden_size", nullptr, "no \"hidden_size\"");
  EXPECT_KEY_ERROR(qwen3(), "vocab_size", int64_t{1} << 40, "vocab_size is 1099511627776");
  EXPECT_KEY_ERROR(qwen3(), "num_hidden_layers", 1000000, "layers is 1000000");
  EXPECT_KEY_ERROR(qwen3(), "num_key_value_heads", 3, "not a multiple of 3");
  EXPECT_KEY_ERROR(qwen3(), "num_key_value_heads", 0, "key-value heads is 0");
  EXPECT_KEY_ERROR(qwen3(), "num_key_value_heads", 32, "key-value heads is 32");
  EXPECT_KEY_ERROR(qwen3(), "head_dim", 127, "head_dim 127 is odd");
  EXPECT_KEY_ERROR(qwen3(), "rms_norm_eps", -1, "rms_norm_eps");
  EXPECT_KEY_ERROR(qwen3(), "rope_theta", 0, "rope_theta");
  EXPECT_KEY_ERROR(qwen3(), "eos_token_id", 151936, "eos_token_id is 151936");
  EXPECT_KEY_ERROR(qwen3(), "eos_token_id", json(std::vector<int>(65, 1)), "65 ids");
  EXPECT_KEY_ERROR(qwen3(), "bos_token_id", -5, "bos_token_id is -5");
  json no_heads = qwen3();
  no_heads.erase("head_dim");
  EXPECT_KEY_ERROR(no_heads, "num_attention_heads", 0, "num_attention_heads 0");
  EXPECT_KEY_ERROR(no_heads, "num_attention_heads", 7, "not a multiple");
}

TEST(HfConfig, ModelsThatAreNotSupported) {
  EXPECT_KEY_ERROR(qwen3(), "model_type", "gpt2", "model_type is \"gpt2\", expected orthrus");
  EXPECT_KEY_ERROR(qwen3(), "use_sliding_window", true, "sliding windows are not supported");
  EXPECT_KEY_ERROR(qwen3(), "hidden_act", "gelu", "hidden_act is \"gelu\", expected silu");
  EXPECT_KEY_ERROR(qwen3(), "quantization_config", json::object(), "quantization_config");
  EXPECT_INPUT_ERROR(parse_hf_config({"d", "", "", true}), "not valid JSON");
  EXPECT_INPUT_ERROR(parse_hf_config({"d", std::string(5000, '['), "", true}), "nested deeper");
  EXPECT_INPUT_ERROR(parse_hf_config({"d", "1e999", "", true}), "a number out of range");
  EXPECT_INPUT_ERROR(parse_hf_config({"d", "\"\xff\"", "", true}), "not valid JSON");
}

/// A llama GGUF of 1 layer, 2 heads of 2 in 4, vocabulary 3.
GgufBuilder small_gguf() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .text("general.name", "Small")
      .u32("llama.block_count", 1)
      .u32("llama.context_length", 64)
      .u32("llama.embedding_length", 4)
      .u32("llama.feed_forward_length", 6)
      .u32("llama.attention.head_count", 2)
      .u32("llama.attention.head_count_kv", 1)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .zeros("token_embd.weight", {4, 3});
  return builder;
}

ModelConfig parse(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  return parse_gguf_config(GgufFile(testing::as_bytes(bytes), "f"));
}

TEST(GgufConfig, Llama) {
  const ModelConfig c = parse(small_gguf()
                                  .u32("tokenizer.ggml.bos_token_id", 0)
                                  .u32("tokenizer.ggml.eos_token_id", 1)
                                  .u32("tokenizer.ggml.eot_token_id", 2)
                                  .u32("tokenizer.ggml.eom_token_id", 0)
                                  .f32("llama.rope.freq_base", 1e5f)
                                  .u32("llama.rope.dimension_count", 2));
  EXPECT_EQ(c.architecture, Architecture::kLlama);
  EXPECT_EQ(c.name, "Small");
  EXPECT_EQ(c.vocab_size, 3);
  EXPECT_EQ(c.hidden_size, 4);
  EXPECT_EQ(c.intermediate_size, 6);
  EXPECT_EQ(c.num_layers, 1);
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.num_kv_heads, 1);
  EXPECT_EQ(c.head_dim, 2);
  EXPECT_EQ(c.max_position_embeddings, 64);
  EXPECT_EQ(static_cast<float>(c.rms_norm_eps), 1e-5f);
  EXPECT_EQ(c.rope.theta, 1e5);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_FALSE(c.is_orthrus || c.qk_norm || c.attention_bias);
  EXPECT_EQ(c.bos_token_id, 0);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{1, 2, 0}));
  EXPECT_FALSE(c.sampling.do_sample);
}

TEST(GgufConfig, SamplingDefaults) {
  const ModelConfig c = parse(small_gguf()
                                  .f64("general.sampling.temp", 0.7)
                                  .f32("general.sampling.top_p", 0.5f)
                                  .i32("general.sampling.top_k", 20)
                                  .f32("general.sampling.min_p", 0.25f)
                                  .f32("general.sampling.penalty_repeat", 1.5f));
  EXPECT_TRUE(c.sampling.do_sample);
  EXPECT_EQ(c.sampling.temperature, 0.7);
  EXPECT_EQ(c.sampling.top_p, 0.5);
  EXPECT_EQ(c.sampling.top_k, 20);
  EXPECT_EQ(c.sampling.min_p, 0.25);
  EXPECT_EQ(c.sampling.repetition_penalty, 1.5);
  EXPECT_INPUT_ERROR(parse(small_gguf().f32("general.sampling.top_p", 2)),
                     "general.sampling.top_p is 2, expected 1e-06 to 1");
}

TEST(GgufConfig, WhatTensorsSay) {
  EXPECT_FALSE(parse(small_gguf().zeros("output.weight", {4, 3})).tie_word_embeddings);
  EXPECT_TRUE(parse(small_gguf().zeros("blk.0.attn_q.bias", {4})).attention_bias);
  const GgufBuilder diffusion = small_gguf().zeros("blk.0.attn_q_diff.weight", {4, 4});
  EXPECT_INPUT_ERROR(parse(diffusion), "no metadata orthrus.block_size");
  GgufBuilder complete = diffusion;
  const ModelConfig c =
      parse(complete.u32("orthrus.block_size", 8).u32("orthrus.mask_token_id", 2));
  EXPECT_TRUE(c.is_orthrus);
  EXPECT_EQ(c.block_size, 8);
  EXPECT_EQ(c.mask_token_id, 2);
  GgufBuilder embedded = diffusion;
  EXPECT_EQ(
      parse(embedded.u32("orthrus.block_size", 8).zeros("mask_embd.weight", {4})).mask_token_id,
      -1);
}

TEST(GgufConfig, RopeFactors) {
  auto factor = [](float value) {
    return small_gguf().tensor("rope_freqs.weight", 0, {1}, GgufBuilder::bytes(value));
  };
  EXPECT_EQ(parse(factor(8.0f)).rope.divisors, std::vector<float>{8.0f});
  EXPECT_INPUT_ERROR(parse(factor(0)), "rope_freqs.weight holds 0");
  EXPECT_INPUT_ERROR(parse(factor(std::nanf(""))), "rope_freqs.weight holds nan");
  EXPECT_INPUT_ERROR(parse(small_gguf().zeros("rope_freqs.weight", {2})), "expected [1]");
  EXPECT_EQ(parse(small_gguf()
                      .text("llama.rope.scaling.type", "linear")
                      .f32("llama.rope.scaling.factor", 4))
                .rope.divisors,
            std::vector<float>{4.0f});
  EXPECT_INPUT_ERROR(parse(small_gguf().text("llama.rope.scaling.type", "longrope")),
                     "\"longrope\", expected none, linear or yarn");
}

TEST(GgufConfig, Yarn) {
  // Heads of 64, as in HfConfig.YarnParameters.
  const auto yarn = [] {
    GgufBuilder gguf = small_gguf();
    return gguf.u32("llama.attention.key_length", 64)
        .u32("llama.attention.value_length", 64)
        .text("llama.rope.scaling.type", "yarn")
        .f32("llama.rope.scaling.factor", 2.5f)
        .u32("llama.rope.scaling.original_context_length", 4096)
        .f32("llama.rope.scaling.yarn_beta_fast", 16)
        .f32("llama.rope.scaling.yarn_beta_slow", 2);
  };
  const ModelConfig c = parse(yarn());
  expect_divisors(c.rope, {{12, 1}, {16, 1.363636}, {20, 2.142857}, {23, 2.5}, {31, 2.5}});
  EXPECT_NEAR(c.rope.attention_factor, 1.0916290731874154, 1e-12);
  EXPECT_EQ(c.max_position_embeddings, 10240);
  const auto attention = [&](const char* key, float value) {
    return parse(yarn().f32(key, value)).rope.attention_factor;
  };
  EXPECT_NEAR(attention("llama.rope.scaling.attn_factor", 0.5f), 0.5458145366, 1e-9);
  EXPECT_EQ(attention("llama.rope.scaling.yarn_attn_factor", 0.5f), 0.5);
  EXPECT_EQ(attention("llama.rope.scaling.yarn_log_multiplier", 1), 1);
  EXPECT_NEAR(attention("llama.rope.scaling.yarn_log_multiplier", 0.5f), 1.0438076, 1e-6);
  EXPECT_NEAR(attention("llama.rope.scaling.yarn_ext_factor", 1), 1.0916290731, 1e-9);
  EXPECT_INPUT_ERROR(parse(yarn().f32("llama.rope.scaling.yarn_ext_factor", 0.5f)),
                     "yarn_ext_factor is 0.5, only 1 is supported");
  EXPECT_INPUT_ERROR(parse(small_gguf().text("llama.rope.scaling.type", "yarn")),
                     "no metadata llama.rope.scaling.factor");
  EXPECT_INPUT_ERROR(parse(yarn().f32("llama.rope.scaling.attn_factor", 0)), "attn_factor is 0");
}

TEST(GgufConfig, Refuses) {
  GgufBuilder other;
  other.text("general.architecture", "gemma3").zeros("token_embd.weight", {4, 3});
  EXPECT_INPUT_ERROR(parse(other), "architecture gemma3, expected llama, qwen2 or qwen3");
  EXPECT_INPUT_ERROR(parse(GgufBuilder()), "no general.architecture");
  GgufBuilder bare;
  bare.text("general.architecture", "llama").zeros("token_embd.weight", {4, 3});
  EXPECT_INPUT_ERROR(parse(bare), "no metadata llama.embedding_length");
  EXPECT_INPUT_ERROR(parse(small_gguf().u32("llama.rope.dimension_count", 4)),
                     "llama.rope.dimension_count is 4, expected the head size 2");
  EXPECT_INPUT_ERROR(parse(small_gguf().u32("llama.attention.value_length", 4)), "value_length");
  EXPECT_INPUT_ERROR(parse(small_gguf().u32("llama.attention.key_length", 0)), "head_dim is 0");
  EXPECT_INPUT_ERROR(parse(small_gguf().u32("tokenizer.ggml.eos_token_id", 3)), "expected 0 to 2");
  EXPECT_INPUT_ERROR(parse(small_gguf().f32("llama.rope.freq_base", std::nanf(""))), "freq_base");
  EXPECT_INPUT_ERROR(parse(small_gguf().text("llama.rope.freq_base", "big")), "not a number");
}

}  // namespace
}  // namespace orthrus
