#include "text/tokenizer_gguf.h"
#include "base/error.h"
#include "formats/gguf_keys.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

/// What the name in tokenizer.ggml.pre stands for.
void read_pre(std::string_view pre, TokenizerSpec& spec) {
  for (const KnownPretokenizer& known : kKnownPretokenizers) {
    if (pre != known.name) continue;
    if (known.digits) spec.split.emplace_back(DigitSplit{true});
    spec.split.emplace_back(RegexSplit{Regex(std::string(known.pattern), spec.where)});
    spec.nfc = known.nfc;
    spec.ignore_merges = known.ignore_merges;
    return;
  }
  fail(
      "{}: tokenizer.ggml.pre \"{}\" is not supported, expected gpt-2, smollm, qwen2 or "
      "llama-bpe",
      spec.where, printable(pre));
}

/// The bos token, where the file wants it before a text: as llama.cpp also without being told where
/// the model is a Llama 3.
void read_prefix(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                 TokenizerSpec& spec) {
  const bool usual = spec.ignore_merges;
  if (!metadata.get<bool>(gguf_key::kAddBos).value_or(usual)) return;
  const auto id = metadata.get<int64_t>(gguf_key::kBos);
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
    fail("{}: {} has {} entries, expected as many as {}: {}", spec.where, gguf_key::kTokenTypes,
         types.size(), gguf_key::kTokens, tokens.size());
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto id = static_cast<int32_t>(i);
    int64_t type = types.empty() ? 0 : types[i];
    if (type == kUnusedToken) continue;  // a row without a token
    spec.vocabulary.emplace_back(tokens[i], id);
    if (type == kControlToken || type == kUserDefinedToken) {
      AddedToken added;
      added.content = tokens[i];
      added.id = id;
      added.special = type == kControlToken;
      spec.added.push_back(std::move(added));
    }
  }
}

}  // namespace

void read_tokenizer_gguf(const GgufMetadata& metadata, TokenizerSpec& spec) {
  auto model = metadata.get<std::string_view>(gguf_key::kTokenizerModel);
  if (!model) fail("{}: no tokenizer.ggml.model in the metadata", spec.where);
  if (*model != "gpt2") {
    fail("{}: tokenizer.ggml.model \"{}\" is not supported, expected \"gpt2\" (byte-level BPE)",
         spec.where, printable(*model));
  }
  read_pre(metadata.get<std::string_view>(gguf_key::kPretokenizer).value_or("default"), spec);
  auto tokens = metadata.get<std::vector<std::string_view>>(gguf_key::kTokens);
  auto merges = metadata.get<std::vector<std::string_view>>(gguf_key::kMerges);
  if (!tokens) fail("{}: no {} in the metadata", spec.where, gguf_key::kTokens);
  if (!merges) fail("{}: no {} in the metadata", spec.where, gguf_key::kMerges);
  read_tokens(
      *tokens,
      metadata.get<std::vector<int64_t>>(gguf_key::kTokenTypes).value_or(std::vector<int64_t>()),
      spec);
  read_prefix(metadata, *tokens, spec);
  spec.merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    spec.merges.push_back(split_merge((*merges)[i], i, spec.where));
  }
}

}  // namespace orthrus
