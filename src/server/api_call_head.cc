#include "server/api_call_head.h"

#include <nlohmann/json.hpp>

namespace orthrus {
namespace {

constexpr size_t kMaxHead = 1024;

/// Matches what is expected piece by piece; after the first miss everything misses.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  void space() {
    if (failed_) return;
    const size_t found = text_.find_first_not_of(" \t\r\n", at_);
    at_ = found == text_.npos ? text_.size() : found;
  }

  bool literal(std::string_view wanted) {
    space();
    if (failed_) return false;
    const std::string_view rest = text_.substr(at_, wanted.size());
    if (rest == wanted) {
      at_ += wanted.size();
      return true;
    }
    return miss(wanted.starts_with(rest));
  }

  /// A JSON string, decoded.
  bool string(std::string& value) {
    if (!literal("\"")) return false;
    for (size_t end = at_; end < text_.size(); ++end) {
      if (text_[end] == '\\') {
        ++end;
      } else if (text_[end] == '"') {
        const auto json =
            nlohmann::json::parse(text_.substr(at_ - 1, end - at_ + 2), nullptr, false);
        if (!json.is_string() || json.get_ref<const std::string&>().empty()) return miss(false);
        value = json.get<std::string>();
        at_ = end + 1;
        return true;
      }
    }
    return miss(true);
  }

  char next() {
    space();
    return failed_ || at_ == text_.size() ? '\0' : text_[at_];
  }

  size_t at() const { return at_; }
  bool partial() const { return partial_; }

 private:
  bool miss(bool partial) {
    failed_ = true;
    partial_ = partial;
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  bool partial_ = false;  // more text may still match
};

}  // namespace

CallHead read_call_head(std::string_view text) {
  using Kind = CallHead::Kind;
  const std::string_view bounded = text.substr(0, kMaxHead);
  Matcher matcher(bounded);
  CallHead head;
  if (matcher.literal("{") && matcher.literal("\"name\"") && matcher.literal(":") &&
      matcher.string(head.name)) {
    if (matcher.next() == '}' && matcher.literal("}")) {
      return {Kind::kNoArguments, matcher.at(), std::move(head.name)};
    }
    if (matcher.literal(",") && matcher.literal("\"arguments\"") && matcher.literal(":") &&
        matcher.literal("{")) {
      return {Kind::kArguments, matcher.at() - 1, std::move(head.name)};
    }
  }
  const bool more = matcher.partial() && text.size() < kMaxHead;
  head.kind = more ? Kind::kPartial : Kind::kNone;
  return head;
}

}  // namespace orthrus
