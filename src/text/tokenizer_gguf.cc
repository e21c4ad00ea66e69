#include "text/tokenizer_gguf.h"

#include <cmath>

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
/// the model is a Llama 2 or 3.
void read_prefix(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                 TokenizerSpec& spec) {
  const bool usual = spec.ignore_merges || spec.marks;
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
    if (type == kControlToken || type == kUserDefinedToken || type == kUnknownToken) {
      AddedToken added;
      added.content = tokens[i];
      added.id = id;
      added.special = type != kUserDefinedToken;
      spec.added.push_back(std::move(added));
    }
  }
}

void read_merges(const GgufMetadata& metadata, TokenizerSpec& spec) {
  const auto merges = metadata.get<std::vector<std::string_view>>(gguf_key::kMerges);
  if (!merges) fail("{}: no {} in the metadata", spec.where, gguf_key::kMerges);
  spec.merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    spec.merges.push_back(split_merge((*merges)[i], i, spec.where));
  }
}

/// The merges that the scores of the normal tokens make.
void read_scores(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                 const std::vector<int64_t>& types, TokenizerSpec& spec) {
  const auto scores = metadata.get<std::vector<double>>(gguf_key::kScores);
  if (!scores) fail("{}: no {} in the metadata", spec.where, gguf_key::kScores);
  if (scores->size() != tokens.size() || types.empty()) {
    fail("{}: {} scores and {} types, expected as many as {}: {}", spec.where, scores->size(),
         types.size(), gguf_key::kTokens, tokens.size());
  }
  std::vector<ScoredPiece> pieces;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] != kNormalToken) continue;
    if (!std::isfinite((*scores)[i]) || tokens[i].size() > kMaxScoredPieceBytes) {
      fail("{}: token {} has {} bytes and the score {}, expected at most {} and a finite one",
           spec.where, i, tokens[i].size(), (*scores)[i], kMaxScoredPieceBytes);
    }
    pieces.push_back({tokens[i], (*scores)[i]});
  }
  uint32_t last = UINT32_MAX;
  for (const ScoredMerge& merge : merges_by_score(pieces)) {
    spec.merges.emplace_back(merge.left, merge.right);
    spec.tied.push_back(merge.rank == last);
    last = merge.rank;
  }
}

}  // namespace

void read_tokenizer_gguf(const GgufMetadata& metadata, TokenizerSpec& spec) {
  const auto model = metadata.get<std::string_view>(gguf_key::kTokenizerModel);
  if (!model) fail("{}: no tokenizer.ggml.model in the metadata", spec.where);
  const bool pieces = *model == kSentencePieceModel;
  if (!pieces && *model != kByteLevelModel) {
    fail(
        "{}: tokenizer.ggml.model \"{}\" is not supported, expected \"gpt2\" (byte-level BPE) or "
        "\"llama\" (SentencePiece's BPE)",
        spec.where, printable(*model));
  }
  if (pieces) {
    SpaceMarks& marks = spec.marks.emplace();
    marks.in_normalizer = true;
    marks.strip = metadata.get<bool>(gguf_key::kAddSpacePrefix).value_or(true);
    if (marks.strip) marks.prefix = SpaceMarks::Prefix::kAlways;
  } else {
    read_pre(metadata.get<std::string_view>(gguf_key::kPretokenizer).value_or("default"), spec);
  }
  const auto tokens = metadata.get<std::vector<std::string_view>>(gguf_key::kTokens);
  if (!tokens) fail("{}: no {} in the metadata", spec.where, gguf_key::kTokens);
  const auto types =
      metadata.get<std::vector<int64_t>>(gguf_key::kTokenTypes).value_or(std::vector<int64_t>());
  read_tokens(*tokens, types, spec);
  read_prefix(metadata, *tokens, spec);
  if (pieces) {
    read_scores(metadata, *tokens, types, spec);
  } else {
    read_merges(metadata, spec);
  }
}

}  // namespace orthrus
