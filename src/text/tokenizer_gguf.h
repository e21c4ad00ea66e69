#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/gguf_writer.h"
#include "formats/model_config.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_spec.h"

namespace orthrus {

// Values of tokenizer.ggml.token_type (the GGUF specification's table).
inline constexpr int32_t kNormalToken = 1;
inline constexpr int32_t kUnknownToken = 2;
inline constexpr int32_t kControlToken = 3;
inline constexpr int32_t kUserDefinedToken = 4;
inline constexpr int32_t kUnusedToken = 5;
inline constexpr int32_t kByteToken = 6;

// Values of tokenizer.ggml.model.
inline constexpr std::string_view kByteLevelModel = "gpt2";
inline constexpr std::string_view kSentencePieceModel = "llama";

/// What a name in tokenizer.ggml.pre stands for.
struct KnownPretokenizer {
  std::string_view name;
  std::string_view pattern;
  bool digits;  ///< each alone, before the pattern
  bool nfc;
  bool ignore_merges;
};

/// Of a tokenizer with several names the first is written.
inline constexpr std::array<KnownPretokenizer, 7> kKnownPretokenizers = {{
    {"gpt-2", kGpt2Pattern, false, false, false},
    {"default", kGpt2Pattern, false, false, false},
    {"smollm", kGpt2Pattern, true, false, false},
    {"qwen2", kQwen2Pattern, false, true, false},
    {"llama-bpe", kLlama3Pattern, false, false, true},
    {"llama3", kLlama3Pattern, false, false, true},
    {"llama-v3", kLlama3Pattern, false, false, true},
}};

/// Writes the tokenizer and chat template of a Hugging Face directory as GGUF files have them, one
/// token a row of the embedding. Error(kInput) where it has no form there (a pre-tokenizer without
/// a name, merges that no scores make, tokens that go before a text and are not bos); a notice
/// where a part is lost.
void write_tokenizer_gguf(const std::string& directory, const ModelConfig& config, GgufPairs& out);

}  // namespace orthrus
