#pragma once

#include <array>

/// Keys of GGUF metadata that this program reads and writes (ggml's gguf.md).
namespace orthrus::gguf_key {

inline constexpr const char* kArchitecture = "general.architecture";
inline constexpr const char* kName = "general.name";
inline constexpr const char* kFileType = "general.file_type";
inline constexpr const char* kQuantizationVersion = "general.quantization_version";
inline constexpr const char* kAlignment = "general.alignment";

// Behind "<architecture>.".
inline constexpr const char* kContextLength = "context_length";
inline constexpr const char* kEmbeddingLength = "embedding_length";
inline constexpr const char* kFeedForwardLength = "feed_forward_length";
inline constexpr const char* kBlockCount = "block_count";
inline constexpr const char* kHeads = "attention.head_count";
inline constexpr const char* kKvHeads = "attention.head_count_kv";
inline constexpr const char* kKeyLength = "attention.key_length";
inline constexpr const char* kValueLength = "attention.value_length";
inline constexpr const char* kRotaryDimensions = "rope.dimension_count";
inline constexpr const char* kNormEpsilon = "attention.layer_norm_rms_epsilon";
inline constexpr const char* kRotaryBase = "rope.freq_base";
inline constexpr const char* kRotaryScaling = "rope.scaling.type";
inline constexpr const char* kRotaryFactor = "rope.scaling.factor";
inline constexpr const char* kRotaryOriginalContext = "rope.scaling.original_context_length";
/// Times what the type of scaling says.
inline constexpr const char* kRotaryAttentionFactor = "rope.scaling.attn_factor";
inline constexpr const char* kYarnExtrapolation = "rope.scaling.yarn_ext_factor";
/// In place of what the factor says: transformers' attention_factor.
inline constexpr const char* kYarnAttentionFactor = "rope.scaling.yarn_attn_factor";
inline constexpr const char* kYarnBetaFast = "rope.scaling.yarn_beta_fast";
inline constexpr const char* kYarnBetaSlow = "rope.scaling.yarn_beta_slow";
/// transformers' mscale_all_dim, with an mscale of 1.
inline constexpr const char* kYarnLogMultiplier = "rope.scaling.yarn_log_multiplier";
inline constexpr const char* kVocabularySize = "vocab_size";

inline constexpr const char* kTokenizerModel = "tokenizer.ggml.model";
inline constexpr const char* kPretokenizer = "tokenizer.ggml.pre";
inline constexpr const char* kTokens = "tokenizer.ggml.tokens";
inline constexpr const char* kTokenTypes = "tokenizer.ggml.token_type";
inline constexpr const char* kScores = "tokenizer.ggml.scores";
inline constexpr const char* kAddSpacePrefix = "tokenizer.ggml.add_space_prefix";
inline constexpr const char* kMerges = "tokenizer.ggml.merges";
inline constexpr const char* kBos = "tokenizer.ggml.bos_token_id";
inline constexpr const char* kAddBos = "tokenizer.ggml.add_bos_token";
inline constexpr const char* kChatTemplate = "tokenizer.chat_template";
/// All end an answer: of a sequence, a turn, a message. Templates know the first as eos_token.
inline constexpr std::array<const char*, 3> kEnds = {
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

// Sampling defaults, as double: a decimal fraction is not the same in float.
inline constexpr const char* kTemperature = "general.sampling.temp";
inline constexpr const char* kTopK = "general.sampling.top_k";
inline constexpr const char* kTopP = "general.sampling.top_p";
inline constexpr const char* kMinP = "general.sampling.min_p";
inline constexpr const char* kRepeatPenalty = "general.sampling.penalty_repeat";

inline constexpr const char* kBlockSize = "orthrus.block_size";
inline constexpr const char* kMaskToken = "orthrus.mask_token_id";
inline constexpr const char* kBaseHash = "orthrus.base_hash";

}  // namespace orthrus::gguf_key
