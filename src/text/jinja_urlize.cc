#include "text/jinja_urlize.h"

#include <algorithm>

#include "text/jinja_string.h"
#include "text/pretokenizer_regex.h"

namespace orthrus::jinja {

namespace {

bool matches(const Regex& pattern, std::string_view text) {
  RegexBudget budget(text.size());
  return !pattern.matches(text, budget).empty();
}

/// With a scheme or www any host; without, one below a well-known domain.
bool is_web_address(std::string_view word) {
  static const Regex pattern(
      R"((?i)\A(?:(?:https?://|www\.)(?:[\w%-]+\.)*(?:[a-z]{2,63}|xn--[\w%]{2,59}))"
      R"(|(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil))"
      R"(|https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])))"
      R"((?::\d{1,5})?(?:[/?#]\S*)?\z)",
      "urlize");
  return matches(pattern, word);
}

bool is_mail_address(std::string_view word) {
  static const Regex pattern(R"(\A\S+@\w[\w.-]*\.\w+\z)", "urlize");
  return matches(pattern, word);
}

/// A word without the punctuation around it.
struct Word {
  std::string head, middle, tail;
};

Word trimmed(std::string_view word) {
  Word parts;
  const auto at_token = [&](std::initializer_list<std::string_view> tokens, bool at_end) {
    for (std::string_view token : tokens) {
      if (at_end ? word.ends_with(token) : word.starts_with(token)) return token.size();
    }
    return size_t{0};
  };
  while (const size_t size = at_token({"(", "<", "&lt;"}, false)) {
    parts.head += word.substr(0, size);
    word.remove_prefix(size);
  }
  const std::string_view before = word;
  while (const size_t size = at_token({")", ">", ".", ",", "&gt;"}, true)) {
    word.remove_suffix(size);
  }
  parts.middle = word;
  parts.tail = before.substr(word.size());
  // A bracket that the address itself opened belongs to it.
  for (const auto& [open, close] :
       {std::pair<std::string_view, std::string_view>("(", ")"), {"<", ">"}, {"&lt;", "&gt;"}}) {
    const size_t opened = count_of(parts.middle, open);
    if (opened <= count_of(parts.middle, close)) continue;
    size_t moved = 0;
    for (size_t i = std::min(opened, count_of(parts.tail, close)); i > 0; --i) {
      moved = parts.tail.find(close, moved) + close.size();
    }
    parts.middle += parts.tail.substr(0, moved);
    parts.tail.erase(0, moved);
  }
  return parts;
}

std::string shortened(const std::string& address, int64_t shown) {
  if (shown < 0 || static_cast<int64_t>(count_characters(address)) <= shown) return address;
  return address.substr(0, character_offset(address, static_cast<size_t>(shown))) + "...";
}

std::string linked(const std::string& word, const LinkStyle& style) {
  if (is_web_address(word)) {
    const bool whole = word.starts_with("https://") || word.starts_with("http://");
    return "<a href=\"" + std::string(whole ? "" : "https://") + word + '"' + style.attributes +
           '>' + shortened(word, style.shown) + "</a>";
  }
  if (word.starts_with("mailto:") && is_mail_address(word.substr(7))) {
    return "<a href=\"" + word + "\">" + word.substr(7) + "</a>";
  }
  if (word.find('@') != std::string::npos && !word.starts_with("www.") && !word.starts_with('@') &&
      word.find(':') == std::string::npos && is_mail_address(word)) {
    return "<a href=\"mailto:" + word + "\">" + word + "</a>";
  }
  std::string text = word;
  for (const std::string& scheme : style.schemes) {
    if (text != scheme && text.starts_with(scheme)) {
      text = "<a href=\"" + text + '"' + style.attributes + '>' + text + "</a>";
    }
  }
  return text;
}

}  // namespace

bool is_scheme(std::string_view text) {
  static const Regex pattern(R"(\A[\w.+-]{2,}:/{0,2}\z)", "urlize");
  return matches(pattern, text);
}

std::string urlize(std::string_view escaped, const LinkStyle& style) {
  std::string out;
  while (!escaped.empty()) {
    const std::string_view rest = strip(escaped, std::nullopt, kLeft);
    out += escaped.substr(0, escaped.size() - rest.size());
    const size_t size = word_end(rest);
    const Word word = trimmed(rest.substr(0, size));
    out += word.head + linked(word.middle, style) + word.tail;
    escaped = rest.substr(size);
  }
  return out;
}

}  // namespace orthrus::jinja
