#include "text/tokenizer_json_reader.h"

#include <utility>

#include "base/error.h"

namespace orthrus {

using nlohmann::json;

namespace {

constexpr size_t kMaxDepth = 32;  // real files: 6

}  // namespace

void TokenizerJsonReader::read(std::string_view text) {
  json::sax_parse(text.begin(), text.end(), this);
  if (!root_.is_object()) fail("{}: not a JSON object", spec_.where);
}

bool TokenizerJsonReader::parse_error(std::size_t position, const std::string&,
                                      const nlohmann::detail::exception&) {
  fail("{}: not valid JSON (at byte {})", spec_.where, position);
}

void TokenizerJsonReader::malformed() const {
  if (mode_ == Mode::kVocabulary) {
    fail("{}: model.vocab entry {} is not a token with an id below 2^31", spec_.where,
         spec_.vocabulary.size());
  }
  fail("{}: model.merges[{}] is neither \"a b\" nor [\"a\", \"b\"]", spec_.where,
       spec_.merges.size());
}

bool TokenizerJsonReader::at_model_member(const char* name) const {
  return mode_ == Mode::kDom && open_.size() == 2 && keys_[0] == "model" && keys_[1] == name;
}

std::string_view TokenizerJsonReader::store(std::string_view text) {
  ORTHRUS_CHECK(spec_.storage.size() + text.size() <= spec_.storage.capacity());
  size_t begin = spec_.storage.size();
  spec_.storage += text;
  return std::string_view(spec_.storage).substr(begin);
}

json* TokenizerJsonReader::place(json value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  json& parent = *open_.back();
  if (parent.is_array()) {
    parent.push_back(std::move(value));
    return &parent.back();
  }
  json& slot = parent[keys_.back()];
  slot = std::move(value);
  return &slot;
}

bool TokenizerJsonReader::scalar(json value) {
  if (mode_ != Mode::kDom) malformed();
  place(std::move(value));
  return true;
}

void TokenizerJsonReader::open(json container) {
  if (open_.size() == kMaxDepth) {
    fail("{}: JSON nested deeper than {} levels", spec_.where, kMaxDepth);
  }
  open_.push_back(place(std::move(container)));
  keys_.emplace_back();
}

void TokenizerJsonReader::close() {
  open_.pop_back();
  keys_.pop_back();
}

void TokenizerJsonReader::add_merge_part(std::string_view part) {
  if (merge_.size() == 2) malformed();
  merge_.push_back(store(part));
}

bool TokenizerJsonReader::null() { return scalar(nullptr); }
bool TokenizerJsonReader::boolean(bool value) { return scalar(value); }
bool TokenizerJsonReader::number_integer(number_integer_t value) { return scalar(value); }
bool TokenizerJsonReader::number_float(number_float_t value, const string_t&) {
  return scalar(value);
}
bool TokenizerJsonReader::binary(binary_t& value) { return scalar(json::binary(value)); }

bool TokenizerJsonReader::number_unsigned(number_unsigned_t value) {
  if (mode_ != Mode::kVocabulary) return scalar(value);
  if (value > INT32_MAX) malformed();
  spec_.vocabulary.emplace_back(token_, static_cast<int32_t>(value));
  return true;
}

bool TokenizerJsonReader::string(string_t& value) {
  if (mode_ == Mode::kMerges) {
    spec_.merges.push_back(split_merge(store(value), spec_.merges.size(), spec_.where));
    return true;
  }
  if (mode_ == Mode::kMerge) {
    add_merge_part(value);
    return true;
  }
  return scalar(std::move(value));
}

bool TokenizerJsonReader::key(string_t& value) {
  if (mode_ == Mode::kVocabulary) {
    token_ = store(value);
  } else {
    keys_.back() = std::move(value);
  }
  return true;
}

bool TokenizerJsonReader::start_object(std::size_t) {
  if (at_model_member("vocab")) {
    if (!spec_.vocabulary.empty()) fail("{}: model.vocab comes twice", spec_.where);
    mode_ = Mode::kVocabulary;
    return true;
  }
  if (mode_ != Mode::kDom) malformed();
  open(json::object());
  return true;
}

bool TokenizerJsonReader::end_object() {
  if (mode_ == Mode::kVocabulary) {
    mode_ = Mode::kDom;
  } else {
    close();
  }
  return true;
}

bool TokenizerJsonReader::start_array(std::size_t) {
  if (at_model_member("merges")) {
    if (!spec_.merges.empty()) fail("{}: model.merges comes twice", spec_.where);
    mode_ = Mode::kMerges;
  } else if (mode_ == Mode::kMerges) {
    mode_ = Mode::kMerge;
    merge_.clear();
  } else if (mode_ == Mode::kDom) {
    open(json::array());
  } else {
    malformed();
  }
  return true;
}

bool TokenizerJsonReader::end_array() {
  if (mode_ == Mode::kMerge) {
    if (merge_.size() != 2) malformed();
    spec_.merges.emplace_back(merge_[0], merge_[1]);
    mode_ = Mode::kMerges;
  } else if (mode_ == Mode::kMerges) {
    mode_ = Mode::kDom;
  } else {
    close();
  }
  return true;
}

}  // namespace orthrus
