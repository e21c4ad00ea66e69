#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/printable.h"
#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_added.h"
#include "text/tokenizer_normalizer.h"
#include "text/tokenizer_spec.h"
#include "text/tokenizer_vocabulary.h"
#include "text/utf8.h"

namespace orthrus {
namespace {

/// Ids that no token may have: a file cannot ask for a table much larger than itself.
constexpr size_t kMaxIdGap = 65536;

/// What a token is found by: its bytes in a byte-level vocabulary, else its text. Nothing where the
/// spelling is not of the byte-level alphabet.
std::optional<std::string> found_by(const TokenizerSpec& spec, std::string_view spelling) {
  if (spec.marks) return std::string(spelling);
  std::string bytes;
  return append_spelled_bytes(bytes, spelling) ? std::optional(bytes) : std::nullopt;
}

/// What a token of SentencePiece's kind stands for.
std::string marked_bytes(std::string_view text) {
  if (const auto byte = byte_of_token(text)) return std::string(1, static_cast<char>(*byte));
  return unmark_spaces(text);
}

bool add_model_token(const TokenizerSpec& spec, std::string_view spelling, int32_t id,
                     Vocabulary& vocabulary) {
  return spec.marks ? vocabulary.add(spelling, marked_bytes(spelling), id)
                    : vocabulary.add_spelled(spelling, id);
}

Vocabulary build_vocabulary(const TokenizerSpec& spec) {
  size_t bytes = 0;
  int32_t last = -1;
  for (const auto& [spelling, id] : spec.vocabulary) {
    bytes += spelling.size();
    last = std::max(last, id);
  }
  for (const AddedToken& token : spec.added) {
    bytes += token.content.size();
    last = std::max(last, token.id);
  }
  size_t ids = static_cast<size_t>(last) + 1;
  size_t entries = spec.vocabulary.size() + spec.added.size();
  if (ids > entries + kMaxIdGap) {
    fail("{}: token id {} is too large for {} tokens", spec.where, last, entries);
  }
  Vocabulary vocabulary(ids, spec.marks ? 2 * bytes : bytes);
  for (const auto& [spelling, id] : spec.vocabulary) {
    if (!add_model_token(spec, spelling, id, vocabulary)) {
      fail("{}: token id {} comes twice, the second time for \"{}\"", spec.where, id,
           printable(spelling));
    }
  }
  return vocabulary;
}

/// Also checks that no other token has the id, and that the model has the text under no other id.
void add_added_tokens(const TokenizerSpec& spec, Vocabulary& vocabulary) {
  for (const AddedToken& token : spec.added) {
    const auto text = found_by(spec, token.content);
    int32_t model_id = text ? vocabulary.find(*text) : -1;
    if (model_id >= 0 && model_id != token.id) {
      fail("{}: added token \"{}\" has id {}, but {} in the vocabulary", spec.where,
           printable(token.content), token.id, model_id);
    }
    bool taken = vocabulary.has(token.id) && model_id < 0;
    if (taken && vocabulary.bytes(token.id) != token.content) {
      fail("{}: added token \"{}\" has the id {} of another token", spec.where,
           printable(token.content), token.id);
    }
    vocabulary.add_literal(token.content, spec.marks ? unmark_spaces(token.content) : token.content,
                           token.id, token.special);
  }
}

/// The tokens of single bytes; -1: none.
std::array<int32_t, 256> byte_ids(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  std::array<int32_t, 256> ids;
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    const auto value = static_cast<uint8_t>(byte);
    ids[byte] = vocabulary.find(spec.marks ? byte_token_name(value)
                                           : std::string(1, static_cast<char>(value)));
    if (spec.marks && ids[byte] < 0) {
      fail("{}: no token {}, expected one for each of the 256 bytes", spec.where,
           byte_token_name(value));
    }
  }
  return ids;
}

/// Looks the sides of the merges up; needs only the model's tokens.
Bpe build_bpe(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  Bpe bpe;
  bpe.set_byte_ids(byte_ids(spec, vocabulary));
  bpe.reserve(spec.merges.size());
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    const auto first = found_by(spec, left), second = found_by(spec, right);
    const bool spelled = first && second;
    int32_t left_id = spelled ? vocabulary.find(*first) : -1;
    int32_t right_id = spelled ? vocabulary.find(*second) : -1;
    int32_t result = spelled ? vocabulary.find(*first + *second) : -1;
    if (left_id < 0 || right_id < 0 || result < 0) {
      fail("{}: merge {} (\"{}\" and \"{}\") is not made of tokens of the vocabulary", spec.where,
           rank, printable(left), printable(right));
    }
    bpe.add_merge(left_id, right_id, result, !spec.tied.empty() && spec.tied[rank]);
  }
  return bpe;
}

}  // namespace

std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, size_t rank,
                                                          const std::string& where) {
  size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
    fail("{}: merge {} \"{}\" is not two tokens with a space between", where, rank,
         printable(merge));
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
}

struct Tokenizer::Impl {
  /// What one call of encode works on.
  struct Work {
    RegexBudget budget;
    Bpe::Scratch scratch;
    std::vector<int32_t> ids;
  };

  explicit Impl(TokenizerSpec& spec)
      : vocabulary(build_vocabulary(spec)),
        bpe(build_bpe(spec, vocabulary)),
        pretokenizer(std::move(spec.split)),
        nfc(spec.nfc),
        ignore_merges(spec.ignore_merges),
        marks(spec.marks) {
    if (marks) bytes_of_marked = byte_ids(spec, vocabulary);
    add_added_tokens(spec, vocabulary);
    for (const AddedToken& token : spec.added) {
      std::string content = token.content;
      if (content.empty()) continue;  // stands for nothing in a text
      if (token.normalized && nfc && !is_plainly_nfc(content)) content = normalize_nfc(content);
      if (token.normalized && marks && marks->in_normalizer) {
        content = mark_spaces(*marks, content, true);
      }
      AddedToken stored = token;
      stored.content = content;
      (token.normalized ? added_normalized : added).add(stored, spec.where);
    }
    if (!spec.unknown_token.empty()) {
      int32_t id = vocabulary.find_any(spec.unknown_token);
      if (id < 0) {
        fail("{}: model.unk_token \"{}\" is not in the vocabulary", spec.where,
             printable(spec.unknown_token));
      }
      bpe.set_unknown(id, spec.fuse_unknown);
    }
    prefix = spec.prefix;
    for (int32_t id = 0; id < static_cast<int32_t>(vocabulary.size()); ++id) {
      if (vocabulary.has(id)) longest = std::max(longest, vocabulary.bytes(id).size());
    }
    if (!marks) return;
    for (const auto& entry : spec.vocabulary) longest = std::max(longest, entry.first.size());
  }

  /// Text without an added token of the first kind.
  void encode_text(std::string_view text, Work& work) const {
    size_t begin = 0;  // of the valid run that is open
    for (size_t position = 0; position < text.size();) {
      Utf8Char character = utf8_at(text, position);
      if (character.kind != Utf8Char::Kind::kValid) {
        encode_valid(text.substr(begin, position - begin), work);
        for (size_t i = 0; i < character.length; ++i) {
          bpe.encode(text.substr(position + i, 1), work.scratch, work.ids);
        }
        begin = position + character.length;
      }
      position += character.length;
    }
    encode_valid(text.substr(begin), work);
  }

  void encode_valid(std::string_view text, Work& work) const {
    std::string normalized;
    if (nfc && !is_plainly_nfc(text)) {
      normalized = normalize_nfc(text);
      text = normalized;
    }
    for (const auto& section : added_normalized.split(text)) {
      if (section.id >= 0) {
        work.ids.push_back(section.id);
        continue;
      }
      for (std::string_view piece : pretokenizer.split(section.text, work.budget)) {
        encode_piece(piece, work);
      }
    }
  }

  void encode_piece(std::string_view piece, Work& work) const {
    int32_t whole = ignore_merges ? vocabulary.find(piece) : -1;
    if (whole >= 0) {
      work.ids.push_back(whole);
    } else if (marks) {
      merge_characters(piece, work);
    } else {
      bpe.encode(piece, work.scratch, work.ids);
    }
  }

  /// Text without an added token of the first kind, SentencePiece's way. Invalid UTF-8 needs no
  /// care: bytes that are no character have no token of their text.
  void encode_marked(std::string_view text, bool at_beginning, Work& work) const {
    std::string normalized;
    const char* const begin = text.data();
    if (marks->in_normalizer) {
      normalized = mark_spaces(*marks, text, at_beginning);
      text = normalized;
    }
    for (const auto& section : added_normalized.split(text)) {
      if (section.id >= 0) {
        work.ids.push_back(section.id);
      } else if (marks->in_normalizer) {
        encode_marked_section(section.text, work);
      } else {
        const bool first = at_beginning && section.text.data() == begin;
        encode_marked_section(mark_spaces(*marks, section.text, first), work);
      }
    }
  }

  void encode_marked_section(std::string_view text, Work& work) const {
    if (!marks->split) return encode_piece(text, work);
    for (std::string_view piece : split_at_marks(text)) encode_piece(piece, work);
  }

  void merge_characters(std::string_view piece, Work& work) const {
    std::vector<int32_t>& symbols = work.scratch.id;
    symbols.clear();
    for (size_t position = 0; position < piece.size();) {
      const std::string_view character = piece.substr(position, utf8_at(piece, position).length);
      const int32_t id = vocabulary.find(character);
      if (id >= 0) {
        symbols.push_back(id);
      } else {
        for (const char byte : character) {
          symbols.push_back(bytes_of_marked[static_cast<unsigned char>(byte)]);
        }
      }
      position += character.size();
    }
    bpe.merge(work.scratch, work.ids);
  }

  Vocabulary vocabulary;
  Bpe bpe;
  Pretokenizer pretokenizer;
  bool nfc = false;
  bool ignore_merges = false;
  std::optional<SpaceMarks> marks;
  std::array<int32_t, 256> bytes_of_marked{};  // the tokens of bytes, with `marks`
  size_t longest = 0;                          // bytes of a token, as it stands in a text
  AddedTokenMatcher added;
  std::vector<int32_t> prefix;         // what the file puts before a text
  AddedTokenMatcher added_normalized;  // looked for in what is left, normalised
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::from_json(std::string_view json) {
  TokenizerSpec spec;
  spec.where = "tokenizer.json";
  read_tokenizer_json(json, spec);
  return Tokenizer(std::make_unique<Impl>(spec));
}

Tokenizer Tokenizer::from_gguf(const GgufMetadata& metadata) {
  TokenizerSpec spec;
  spec.where = "tokenizer of the GGUF file";
  read_tokenizer_gguf(metadata, spec);
  return Tokenizer(std::make_unique<Impl>(spec));
}

Tokenizer Tokenizer::load(const std::string& path) {
  TokenizerSpec spec;
  spec.where = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) spec.where += "/tokenizer.json";
  MappedFile file(spec.where);
  std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (bytes.starts_with("GGUF")) {
    GgufFile gguf(path);
    read_tokenizer_gguf(gguf.metadata(), spec);
    return Tokenizer(std::make_unique<Impl>(spec));
  }
  read_tokenizer_json(bytes, spec);
  return Tokenizer(std::make_unique<Impl>(spec));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  // NFC makes a text at most three times as long (UAX 15), marks for spaces too, and a piece must
  // stay below 2^31 bytes.
  constexpr size_t kMaxTextBytes = INT32_MAX / 3;
  if (text.size() > kMaxTextBytes) {
    fail("a text of {} bytes is too long to be tokenized, expected at most {}", text.size(),
         kMaxTextBytes);
  }
  Impl::Work work{RegexBudget(text.size()), {}, {}};
  for (const auto& section : impl_->added.split(text)) {
    if (section.id >= 0) {
      work.ids.push_back(section.id);
    } else if (impl_->marks) {
      impl_->encode_marked(section.text, section.text.data() == text.data(), work);
    } else {
      impl_->encode_text(section.text, work);
    }
  }
  const std::vector<int32_t>& prefix = impl_->prefix;
  const bool begins_with_it = work.ids.size() >= prefix.size() &&
                              std::equal(prefix.begin(), prefix.end(), work.ids.begin());
  if (add_special_tokens && !begins_with_it) {
    work.ids.insert(work.ids.begin(), prefix.begin(), prefix.end());
  }
  return std::move(work.ids);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (int32_t id : ids) {
    std::string_view bytes = token_bytes(id);
    if (!skip_special || !is_special(id)) out += bytes;
  }
  if (impl_->marks && impl_->marks->strip && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

bool Tokenizer::has_token(int32_t id) const { return impl_->vocabulary.has(id); }

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (!has_token(id)) {
    fail("token id {} is not in the vocabulary of {} ids", id, impl_->vocabulary.size());
  }
  return impl_->vocabulary.bytes(id);
}

size_t Tokenizer::max_token_bytes() const { return impl_->longest; }

bool Tokenizer::is_special(int32_t id) const { return impl_->vocabulary.is_special(id); }

int32_t Tokenizer::token_id(std::string_view token) const {
  return impl_->vocabulary.find_any(token);
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->vocabulary.size()); }

}  // namespace orthrus
