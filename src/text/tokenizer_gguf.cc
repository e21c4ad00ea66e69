#include "base/error.h"
#include "formats/printable.h"
#include "text/tokenizer_spec.h"

namespace orthrus {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kTypes = "tokenizer.ggml.token_type";

// Values of tokenizer.ggml.token_type (the GGUF specification's table).
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;

/// What the name in tokenizer.ggml.pre stands for.
void read_pre(std::string_view pre, TokenizerSpec& spec) {
  auto split = [&](std::string_view pattern) {
    spec.split.emplace_back(RegexSplit{Regex(std::string(pattern), spec.where)});
  };
  if (pre == "gpt-2" || pre == "default") {
    split(kGpt2Pattern);
  } else if (pre == "smollm") {
    spec.split.emplace_back(DigitSplit{true});
    split(kGpt2Pattern);
  } else if (pre == "qwen2") {
    spec.nfc = true;
    split(kQwen2Pattern);
  } else if (pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3") {
    spec.ignore_merges = true;
    split(kLlama3Pattern);
  } else {
    fail(
        "{}: tokenizer.ggml.pre \"{}\" is not supported, expected gpt-2, smollm, qwen2 or "
        "llama-bpe",
        spec.where, printable(pre));
  }
}

/// The bos token, where the file wants it before a text: as llama.cpp also without being told where
/// the model is a Llama 3.
void read_prefix(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                 TokenizerSpec& spec) {
  const bool usual = spec.ignore_merges;
  if (!metadata.get<bool>("tokenizer.ggml.add_bos_token").value_or(usual)) return;
  const auto id = metadata.get<int64_t>("tokenizer.ggml.bos_token_id");
  if (!id) return;
  if (*id < 0 || *id >= static_cast<int64_t>(tokens.size())) {
    fail("{}: tokenizer.ggml.bos_token_id {}, expected an id below {}", spec.where, *id,
         tokens.size());
  }
  spec.prefix.push_back(static_cast<int32_t>(*id));
}

void read_tokens(const std::vector<std::string_view>& tokens, const std::vector<int64_t>& types,
                 TokenizerSpec& spec) {
  if (tokens.size() > INT32_MAX || (!types.empty() && types.size() != tokens.size())) {
    fail("{}: {} has {} entries, expected as many as {}: {}", spec.where, kTypes, types.size(),
         kTokens, tokens.size());
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto id = static_cast<int32_t>(i);
    spec.vocabulary.emplace_back(tokens[i], id);
    int64_t type = types.empty() ? 0 : types[i];
    if (type == kControl || type == kUserDefined) {
      AddedToken added;
      added.content = tokens[i];
      added.id = id;
      added.special = type == kControl;
      spec.added.push_back(std::move(added));
    }
  }
}

}  // namespace

void read_tokenizer_gguf(const GgufMetadata& metadata, TokenizerSpec& spec) {
  auto model = metadata.get<std::string_view>("tokenizer.ggml.model");
  if (!model) fail("{}: no tokenizer.ggml.model in the metadata", spec.where);
  if (*model != "gpt2") {
    fail("{}: tokenizer.ggml.model \"{}\" is not supported, expected \"gpt2\" (byte-level BPE)",
         spec.where, printable(*model));
  }
  read_pre(metadata.get<std::string_view>("tokenizer.ggml.pre").value_or("default"), spec);
  auto tokens = metadata.get<std::vector<std::string_view>>(kTokens);
  auto merges = metadata.get<std::vector<std::string_view>>(kMerges);
  if (!tokens) fail("{}: no {} in the metadata", spec.where, kTokens);
  if (!merges) fail("{}: no {} in the metadata", spec.where, kMerges);
  read_tokens(*tokens, metadata.get<std::vector<int64_t>>(kTypes).value_or(std::vector<int64_t>()),
              spec);
  read_prefix(metadata, *tokens, spec);
  spec.merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    spec.merges.push_back(split_merge((*merges)[i], i, spec.where));
  }
}

}  // namespace orthrus
