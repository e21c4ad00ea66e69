#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace orthrus {

/// Reads a tokenizer.json in one pass: model.vocab and model.merges, nearly all of the file, go
/// straight into the spec; the rest becomes a small DOM. nlohmann's SAX interface.
class TokenizerJsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TokenizerJsonReader(TokenizerSpec& spec) : spec_(spec) {}

  /// Error(kInput) where `text` is not JSON, or vocabulary or merges are malformed.
  void read(std::string_view text);
  /// The file without model.vocab and model.merges.
  const nlohmann::json& root() const { return root_; }

  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t elements) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t elements) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 private:
  enum class Mode { kDom, kVocabulary, kMerges, kMerge };

  /// Whether the value that comes next is that member of "model".
  bool at_model_member(const char* name) const;
  std::string_view store(std::string_view text);
  /// Puts a value that is no string, key or container where the parser stands.
  bool scalar(nlohmann::json value);
  void open(nlohmann::json container);
  void close();
  nlohmann::json* place(nlohmann::json value);
  void add_merge_part(std::string_view part);
  [[noreturn]] void malformed() const;

  TokenizerSpec& spec_;
  Mode mode_ = Mode::kDom;
  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  // the containers around the parser, outermost first
  std::vector<std::string> keys_;      // the last key of each (empty in arrays)
  std::string_view token_;             // the key whose id comes next
  std::vector<std::string_view> merge_;
};

}  // namespace orthrus
