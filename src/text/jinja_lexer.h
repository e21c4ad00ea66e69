#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/jinja_value.h"

namespace orthrus::jinja {

enum class TokenKind {
  kData,  // text outside of tags, white space control applied
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;  // of kString with escapes resolved
  int line;
  Value number = {};  // of kInteger and kFloat
};

/// A template's tokens, with trim_blocks and lstrip_blocks on, line ends as "\n", one trailing
/// newline dropped, comments gone and raw blocks as data. Ends with kEnd.
std::vector<Token> tokenize(std::string_view source);

/// Throws Error(kInput) "chat template line N: ...".
template <typename... Args>
[[noreturn]] void fail_at(int line, fmt::format_string<Args...> format, Args&&... args) {
  fail("chat template line {}: {}", line, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace orthrus::jinja
