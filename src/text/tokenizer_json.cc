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
    if (spec_.marks) {
      read_marks();
    } else {
      read_normalizer(member(root_, "normalizer"));
      read_pretokenizer(member(root_, "pre_tokenizer"));
      read_decoder();
    }
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
    if (flag(model, "byte_fallback", false, "model")) spec_.marks.emplace();
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

  /// SentencePiece's kind: either the normalizer marks the spaces or the pre-tokenizer does.
  void read_marks() {
    SpaceMarks& marks = *spec_.marks;
    read_mark_normalizer(member(root_, "normalizer"));
    const json& pretokenizer = member(root_, "pre_tokenizer");
    if (!pretokenizer.is_null()) {
      const std::string type = text(pretokenizer, "type", "pre_tokenizer");
      if (type != "Metaspace" || marks.in_normalizer) {
        unsupported("pre_tokenizer", type, "\"Metaspace\", or a normalizer that marks the spaces");
      }
      read_metaspace(pretokenizer);
    } else if (!marks.in_normalizer) {
      fail("{}: model.byte_fallback, but neither normalizer nor pre_tokenizer marks the spaces",
           spec_.where);
    }
    read_mark_decoder();
  }

  /// Prepend "▁" and Replace " " by "▁", or the latter alone.
  void read_mark_normalizer(const json& normalizer) {
    if (normalizer.is_null()) return;
    std::vector<const json*> steps = parts(normalizer, "normalizers", "normalizer");
    size_t next = 0;
    if (next < steps.size() && text(*steps[next], "type", "normalizer") == "Prepend") {
      expect_text(*steps[next], "prepend", kSpaceMark, "normalizer");
      spec_.marks->prefix = SpaceMarks::Prefix::kAlways;
      ++next;
    }
    if (next + 1 != steps.size()) {
      unsupported("normalizer", text(normalizer, "type", "normalizer"),
                  "Prepend and Replace, or Replace alone");
    }
    expect_replace(*steps[next], " ", kSpaceMark, "normalizer");
    spec_.marks->in_normalizer = true;
  }

  void read_metaspace(const json& metaspace) {
    const std::string what = "pre_tokenizer";
    expect_text(metaspace, "replacement", kSpaceMark, what);
    const std::string scheme = text(metaspace, "prepend_scheme", what);
    SpaceMarks& marks = *spec_.marks;
    if (scheme == "always" || scheme.empty()) {
      marks.prefix = SpaceMarks::Prefix::kUnlessThere;
    } else if (scheme == "first") {
      marks.prefix = SpaceMarks::Prefix::kFirstUnlessThere;
    } else if (scheme != "never") {
      unsupported(what + ".prepend_scheme", scheme, "always, first or never");
    }
    if (scheme.empty() && !flag(metaspace, "add_prefix_space", true, what)) {
      marks.prefix = SpaceMarks::Prefix::kNone;  // files from before prepend_scheme
    }
    marks.split = flag(metaspace, "split", true, what);
  }

  /// Spaces for marks, bytes for their tokens, all joined, and one space less at the beginning.
  void read_mark_decoder() {
    const json& decoder = member(root_, "decoder");
    const std::string what = "decoder";
    const std::vector<const json*> steps = parts(decoder, "decoders", what);
    const auto type = [&](size_t i) {
      return i < steps.size() ? text(*steps[i], "type", what) : std::string();
    };
    if (type(1) != "ByteFallback" || type(2) != "Fuse" || steps.size() > 4) {
      unsupported(what, text(decoder, "type", what), "Replace, ByteFallback, Fuse and Strip");
    }
    expect_replace(*steps[0], kSpaceMark, " ", what);
    if (steps.size() == 3) return;
    if (type(3) != "Strip") unsupported(what, type(3), "\"Strip\" as the last one");
    expect_text(*steps[3], "content", " ", what);
    const json& start = member(*steps[3], "start");
    const json& stop = member(*steps[3], "stop");
    if ((start != 0 && start != 1) || stop != 0) {
      fail("{}: decoder Strip: expected a start of 0 or 1 and a stop of 0", spec_.where);
    }
    spec_.marks->strip = start == 1;
  }

  /// The steps of a "Sequence", or the one step that `object` is.
  std::vector<const json*> parts(const json& object, const char* key,
                                 const std::string& what) const {
    if (text(object, "type", what) != "Sequence") return {&object};
    std::vector<const json*> steps;
    for (const json& step : member(object, key)) steps.push_back(&step);
    return steps;
  }

  void expect_text(const json& object, const char* key, std::string_view expected,
                   const std::string& what) const {
    const std::string found = text(object, key, what);
    if (found == expected) return;
    fail("{}: {}.{} \"{}\" is not supported, expected \"{}\"", spec_.where, what, key,
         printable(found), expected);
  }

  void expect_replace(const json& step, std::string_view pattern, std::string_view content,
                      const std::string& what) const {
    const std::string type = text(step, "type", what);
    if (type != "Replace") unsupported(what, type, "\"Replace\"");
    expect_text(member(step, "pattern"), "String", pattern, what + ".pattern");
    expect_text(step, "content", content, what);
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
