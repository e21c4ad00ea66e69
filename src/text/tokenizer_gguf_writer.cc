#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "formats/gguf_keys.h"
#include "formats/printable.h"
#include "text/chat_template.h"
#include "text/tokenizer_gguf.h"

namespace orthrus {
namespace {

bool splits_as(const TokenizerSpec& spec, const KnownPretokenizer& known) {
  const size_t steps = known.digits ? 2 : 1;
  if (spec.split.size() != steps) return false;
  if (known.digits) {
    const auto* digits = std::get_if<DigitSplit>(&spec.split.front());
    if (!digits || !digits->individual) return false;
  }
  const auto* split = std::get_if<RegexSplit>(&spec.split.back());
  return split && split->regex.pattern() == known.pattern &&
         split->behavior == SplitBehavior::kIsolated && !split->invert;
}

std::string_view pretokenizer_name(const TokenizerSpec& spec) {
  for (const KnownPretokenizer& known : kKnownPretokenizers) {
    if (spec.nfc == known.nfc && spec.ignore_merges == known.ignore_merges &&
        splits_as(spec, known)) {
      return known.name;
    }
  }
  fail(
      "{}: GGUF has no name for its normalizer and pre-tokenizer, expected those of GPT-2, SmolLM, "
      "Qwen2 or Llama 3",
      spec.where);
}

/// A text and a type for every row of the embedding.
struct TokenTable {
  std::vector<std::string> texts;
  std::vector<int32_t> types;

  TokenTable(const TokenizerSpec& spec, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) texts.push_back(fmt::format("[PAD{}]", i));
    types.assign(texts.size(), kUnusedToken);
    for (const auto& [text, id] : spec.vocabulary) {
      const bool byte = spec.marks && byte_of_token(text);
      set(spec, text, id, byte ? kByteToken : kNormalToken);
    }
    for (const AddedToken& token : spec.added) {
      set(spec, token.content, token.id, token.special ? kControlToken : kUserDefinedToken);
    }
    const int32_t unknown = spec.marks ? find(spec.unknown_token) : -1;
    if (unknown >= 0) types[static_cast<size_t>(unknown)] = kUnknownToken;
  }

  int32_t find(std::string_view text) const {
    const auto found = std::find(texts.begin(), texts.end(), text);
    return found == texts.end() ? -1 : static_cast<int32_t>(found - texts.begin());
  }

 private:
  void set(const TokenizerSpec& spec, std::string_view text, int32_t id, int32_t type) {
    if (id < 0 || static_cast<size_t>(id) >= texts.size()) {
      fail("{}: token \"{}\" has id {}, expected an id below the {} rows of the embedding",
           spec.where, printable(text), id, texts.size());
    }
    texts[static_cast<size_t>(id)] = text;
    types[static_cast<size_t>(id)] = type;
  }
};

/// What a Hugging Face tokenizer can say and a GGUF file cannot.
void note_losses(const TokenizerSpec& spec) {
  const auto strips = [](const AddedToken& token) { return token.strip_left || token.strip_right; };
  const auto token = std::find_if(spec.added.begin(), spec.added.end(), strips);
  if (token != spec.added.end()) {
    spdlog::warn("{}: token \"{}\" takes white space beside it along, which GGUF cannot say",
                 spec.where, printable(token->content));
  }
  if (!spec.unknown_token.empty() && !spec.marks) {
    spdlog::warn(
        "{}: unk_token \"{}\" is not used by readers of GGUF: bytes without a token vanish",
        spec.where, printable(spec.unknown_token));
  }
}

using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

/// Scores from which a reader makes the merges of `spec` again: merges of one token must follow one
/// another, and be all the ways to cut it into two others.
std::vector<float> scores_of(const TokenizerSpec& spec, const TokenTable& table) {
  std::unordered_map<std::string_view, size_t> normal;
  for (size_t id = 0; id < table.texts.size(); ++id) {
    if (table.types[id] == kNormalToken) normal[table.texts[id]] = id;
  }
  const auto unscored = -static_cast<float>(spec.merges.size());  // below all others
  std::vector<float> scores(table.texts.size(), unscored);
  Merges found;
  std::string last;
  int groups = 0;
  bool apart = false;
  for (const auto& [left, right] : spec.merges) {
    const std::string both = fmt::format("{}{}", left, right);
    const auto result = normal.find(both);
    // Added tokens are cut out of a text before it is merged.
    if (result == normal.end() || !normal.contains(left) || !normal.contains(right)) continue;
    found.emplace_back(left, right);
    if (both == last) continue;
    last = both;
    float& score = scores[result->second];
    apart = apart || score != unscored;
    score = -static_cast<float>(groups++);
  }
  std::vector<ScoredPiece> pieces;
  for (const auto& [text, id] : normal) {
    if (text.size() > kMaxScoredPieceBytes) {
      fail("{}: token {} has {} bytes, expected at most {}", spec.where, id, text.size(),
           kMaxScoredPieceBytes);
    }
    pieces.push_back({text, static_cast<double>(scores[id])});
  }
  Merges made;
  for (const ScoredMerge& merge : merges_by_score(pieces)) {
    made.emplace_back(merge.left, merge.right);
  }
  std::sort(found.begin(), found.end());
  std::sort(made.begin(), made.end());
  if (apart || found != made) {
    fail("{}: its merges are not those that scores of its tokens make, GGUF has no other form",
         spec.where);
  }
  return scores;
}

/// SentencePiece's kind.
void write_marked(const TokenizerSpec& spec, const TokenTable& table, GgufPairs& out) {
  using Prefix = SpaceMarks::Prefix;
  const SpaceMarks& marks = *spec.marks;
  const bool prefix = marks.prefix == Prefix::kAlways;
  if (!marks.in_normalizer || marks.strip != prefix || spec.ignore_merges) {
    fail(
        "{}: GGUF has no form for where it marks spaces, expected a normalizer that replaces them, "
        "with or without one before a text that the decoder takes away",
        spec.where);
  }
  out.text(gguf_key::kTokenizerModel, kSentencePieceModel);
  out.texts(gguf_key::kTokens, table.texts);
  out.f32s(gguf_key::kScores, scores_of(spec, table));
  out.i32s(gguf_key::kTokenTypes, table.types);
  out.boolean(gguf_key::kAddSpacePrefix, prefix);
}

void write_byte_level(const TokenizerSpec& spec, const TokenTable& table, GgufPairs& out) {
  std::vector<std::string> merges;
  for (const auto& [left, right] : spec.merges) merges.push_back(fmt::format("{} {}", left, right));
  out.text(gguf_key::kTokenizerModel, kByteLevelModel);
  out.text(gguf_key::kPretokenizer, pretokenizer_name(spec));
  out.texts(gguf_key::kTokens, table.texts);
  out.i32s(gguf_key::kTokenTypes, table.types);
  out.texts(gguf_key::kMerges, merges);
}

/// The token that the chat template knows by that name; -1: none.
int32_t template_token(const TemplateSource& source, const char* name, const TokenTable& table) {
  for (const auto& [key, text] : source.special_tokens) {
    if (key == name) return table.find(text);
  }
  return -1;
}

void write_bos(const TokenizerSpec& spec, int32_t template_bos, int32_t config_bos,
               GgufPairs& out) {
  if (spec.prefix.size() > 1) {
    fail("{}: {} tokens go before a text, GGUF knows one at most", spec.where, spec.prefix.size());
  }
  int32_t bos = template_bos >= 0 ? template_bos : config_bos;
  if (!spec.prefix.empty()) bos = spec.prefix.front();
  if (bos >= 0) out.u32(gguf_key::kBos, bos);
  out.boolean(gguf_key::kAddBos, !spec.prefix.empty());
}

/// The template's eos_token first: readers take the first for it.
void write_ends(const TokenizerSpec& spec, int32_t template_eos, std::vector<int32_t> ids,
                GgufPairs& out) {
  const auto first = std::find(ids.begin(), ids.end(), template_eos);
  if (first != ids.end()) {
    std::rotate(ids.begin(), first, first + 1);
  } else if (template_eos >= 0 && !ids.empty()) {
    spdlog::warn("{}: the template's eos_token, {}, ends no answer: GGUF has {} for both",
                 spec.where, template_eos, ids.front());
  }
  if (ids.size() > gguf_key::kEnds.size()) {
    spdlog::warn("{}: {} tokens end an answer, GGUF has room for the first {}", spec.where,
                 ids.size(), gguf_key::kEnds.size());
    ids.resize(gguf_key::kEnds.size());
  }
  for (size_t i = 0; i < ids.size(); ++i) out.u32(gguf_key::kEnds[i], ids[i]);
}

}  // namespace

void write_tokenizer_gguf(const std::string& directory, const ModelConfig& config, GgufPairs& out) {
  TokenizerSpec spec;
  spec.where = directory + "/tokenizer.json";
  const MappedFile file(spec.where);
  read_tokenizer_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                      spec);
  const TokenTable table(spec, config.vocab_size);
  const TemplateSource source = read_template_source(directory);
  note_losses(spec);
  if (spec.marks) {
    write_marked(spec, table, out);
  } else {
    write_byte_level(spec, table, out);
  }
  write_bos(spec, template_token(source, "bos_token", table), config.bos_token_id, out);
  write_ends(spec, template_token(source, "eos_token", table), config.eos_token_ids, out);
  if (source.text) out.text(gguf_key::kChatTemplate, *source.text);
}

}  // namespace orthrus
