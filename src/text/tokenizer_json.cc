#include <algorithm>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/printable.h"
#include "text/tokenizer_json_reader.h"
#include "text/tokenizer_spec.h"

namespace orthrus {
namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr size_t kMaxSplitSteps = 16;

/// Turns the small parts of the file (all but vocabulary and merges) into a spec.
class SpecBuilder {
 public:
  SpecBuilder(const json& root, TokenizerSpec& spec) : root_(root), spec_(spec) {}

  void build() {
    read_model();
    read_normalizer(member(root_, "normalizer"));
    read_pretokenizer(member(root_, "pre_tokenizer"));
    read_decoder();
    read_added_tokens();
    read_post_processor(member(root_, "post_processor"));
  }

 private:
  /// null where `object` has no such member.
  static const json& member(const json& object, const char* key) {
    static const json null;
    if (!object.is_object()) return null;
    auto found = object.find(key);
    return found == object.end() ? null : *found;
  }

  bool flag(const json& object, const char* key, bool absent, const std::string& what) const {
    const json& value = member(object, key);
    if (value.is_null()) return absent;
    if (!value.is_boolean()) fail("{}: {}.{} is not a boolean", spec_.where, what, key);
    return value.get<bool>();
  }

  std::string text(const json& object, const char* key, const std::string& what) const {
    const json& value = member(object, key);
    if (value.is_null()) return "";
    if (!value.is_string()) fail("{}: {}.{} is not a string", spec_.where, what, key);
    return value.get<std::string>();
  }

  [[noreturn]] void unsupported(const std::string& what, const std::string& found,
                                const char* expected) const {
    fail("{}: {} \"{}\" is not supported, expected {}", spec_.where, what, printable(found),
         expected);
  }

  void read_model() {
    const json& model = member(root_, "model");
    if (!model.is_object()) fail("{}: no object \"model\"", spec_.where);
    std::string type = text(model, "type", "model");
    if (type != "BPE") unsupported("model.type", type, "\"BPE\"");
    // The reader has taken both out where they are what they should be.
    if (spec_.vocabulary.empty() || model.contains("vocab")) {
      fail("{}: model.vocab is not an object of tokens", spec_.where);
    }
    if (model.contains("merges")) fail("{}: model.merges is not an array", spec_.where);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      std::string affix = text(model, key, "model");
      if (!affix.empty()) unsupported(std::string("model.") + key, affix, "none");
    }
    const json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0) {
      fail("{}: model.dropout is not supported, expected null", spec_.where);
    }
    if (flag(model, "byte_fallback", false, "model")) {
      fail("{}: model.byte_fallback is not supported, expected false", spec_.where);
    }
    spec_.ignore_merges = flag(model, "ignore_merges", false, "model");
    spec_.unknown_token = text(model, "unk_token", "model");
    spec_.fuse_unknown = flag(model, "fuse_unk", false, "model");
  }

  void read_normalizer(const json& normalizer) {
    if (normalizer.is_null()) return;
    std::string type = text(normalizer, "type", "normalizer");
    if (type == "NFC") {
      spec_.nfc = true;
    } else if (type == "Sequence") {
      for (const json& part : member(normalizer, "normalizers")) read_normalizer(part);
    } else {
      unsupported("normalizer", type, "\"NFC\"");
    }
  }

  void read_pretokenizer(const json& pretokenizer) {
    std::string type = text(pretokenizer, "type", "pre_tokenizer");
    std::vector<const json*> steps;
    if (type == "Sequence") {
      for (const json& step : member(pretokenizer, "pretokenizers")) steps.push_back(&step);
    } else {
      steps.push_back(&pretokenizer);
    }
    if (steps.size() > kMaxSplitSteps) {
      fail("{}: {} pre-tokenizers, expected at most {}", spec_.where, steps.size(), kMaxSplitSteps);
    }
    for (size_t i = 0; i < steps.size(); ++i) read_step(*steps[i], i + 1 == steps.size());
    if (steps.empty()) unsupported("pre_tokenizer", "", "\"ByteLevel\" as the last one");
  }

  void read_step(const json& step, bool last) {
    const std::string what = "pre_tokenizer";
    std::string type = text(step, "type", what);
    if (last != (type == "ByteLevel")) unsupported(what, type, "\"ByteLevel\" as the last one");
    if (type == "ByteLevel") {
      if (flag(step, "add_prefix_space", true, what)) {
        fail("{}: pre_tokenizer.add_prefix_space is not supported, expected false", spec_.where);
      }
      if (flag(step, "use_regex", true, what)) {
        spec_.split.emplace_back(RegexSplit{Regex(std::string(kGpt2Pattern), spec_.where)});
      }
    } else if (type == "Digits") {
      spec_.split.emplace_back(DigitSplit{flag(step, "individual_digits", false, what)});
    } else if (type == "Split") {
      spec_.split.emplace_back(read_split(step));
    } else {
      unsupported(what, type, "\"Split\", \"Digits\" or \"ByteLevel\"");
    }
  }

  RegexSplit read_split(const json& step) const {
    const std::string what = "pre_tokenizer.pattern";
    const json& pattern = member(step, "pattern");
    std::string regex = text(pattern, "Regex", what);
    if (regex.empty()) regex = escape(text(pattern, "String", what));
    if (regex.empty()) fail("{}: {} has neither a Regex nor a String", spec_.where, what);
    return {Regex(regex, spec_.where + ": " + what), read_behavior(step),
            flag(step, "invert", false, "pre_tokenizer")};
  }

  SplitBehavior read_behavior(const json& step) const {
    std::string name = text(step, "behavior", "pre_tokenizer");
    if (name == "Isolated") return SplitBehavior::kIsolated;
    if (name == "Removed") return SplitBehavior::kRemoved;
    if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
    if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
    if (name == "Contiguous") return SplitBehavior::kContiguous;
    unsupported("pre_tokenizer.behavior", name, "\"Isolated\" or another of the known five");
  }

  /// A pattern that matches exactly `literal`.
  static std::string escape(const std::string& literal) {
    std::string out;
    for (char byte : literal) {
      if (std::string_view("\\.+*?()|[]{}^$#&-~").find(byte) != std::string_view::npos) {
        out.push_back('\\');
      }
      out.push_back(byte);
    }
    return out;
  }

  void read_decoder() const {
    const json& decoder = member(root_, "decoder");
    std::string type = text(decoder, "type", "decoder");
    if (type != "ByteLevel") unsupported("decoder", type, "\"ByteLevel\"");
  }

  /// What comes before a text is kept; what would come behind it has no place before an answer.
  void read_post_processor(const json& processor) {
    if (processor.is_null()) return;
    const std::string what = "post_processor";
    const std::string type = text(processor, "type", what);
    if (type == "Sequence") {
      for (const json& part : member(processor, "processors")) read_post_processor(part);
    } else if (type == "TemplateProcessing") {
      read_prefix(member(processor, "single"), what + ".single");
    } else if (type != "ByteLevel") {
      unsupported(what, type, "\"TemplateProcessing\" or \"ByteLevel\"");
    }
  }

  void read_prefix(const json& pieces, const std::string& what) {
    if (!pieces.is_array()) fail("{}: {} is not an array", spec_.where, what);
    for (const json& piece : pieces) {
      if (piece.is_object() && piece.contains("Sequence")) return;
      if (!piece.is_object() || !member(piece, "SpecialToken").is_object()) {
        fail("{}: {} has a piece that is neither a Sequence nor a SpecialToken", spec_.where, what);
      }
      const std::string name = text(member(piece, "SpecialToken"), "id", what);
      const auto token =
          std::find_if(spec_.added.begin(), spec_.added.end(),
                       [&](const AddedToken& added) { return added.content == name; });
      if (token == spec_.added.end()) {
        fail("{}: {} names \"{}\", which is not among the added tokens", spec_.where, what,
             printable(name));
      }
      spec_.prefix.push_back(token->id);
    }
  }

  void read_added_tokens() {
    const json& tokens = member(root_, "added_tokens");
    if (!tokens.is_null() && !tokens.is_array()) {
      fail("{}: added_tokens is not an array", spec_.where);
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      spec_.added.push_back(read_added_token(tokens[i], fmt::format("added_tokens[{}]", i)));
    }
  }

  AddedToken read_added_token(const json& token, const std::string& what) const {
    AddedToken out;
    out.content = text(token, "content", what);
    const json& id = member(token, "id");
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
      fail("{}: {}.id is not a token id", spec_.where, what);
    }
    out.id = id.get<int32_t>();
    if (flag(token, "single_word", false, what)) {
      fail("{}: {}.single_word is not supported, expected false", spec_.where, what);
    }
    out.special = flag(token, "special", false, what);
    out.strip_left = flag(token, "lstrip", false, what);
    out.strip_right = flag(token, "rstrip", false, what);
    out.normalized = flag(token, "normalized", !out.special, what);
    return out;
  }

  const json& root_;
  TokenizerSpec& spec_;
};

}  // namespace

void read_tokenizer_json(std::string_view text, TokenizerSpec& spec) {
  if (text.size() > kMaxFileBytes) {
    fail("{}: {} bytes, expected at most {}", spec.where, text.size(), kMaxFileBytes);
  }
  // No escape in JSON is shorter than what it stands for, so the views stay where they are.
  spec.storage.reserve(text.size());
  TokenizerJsonReader reader(spec);
  reader.read(text);
  SpecBuilder(reader.root(), spec).build();
}

}  // namespace orthrus
