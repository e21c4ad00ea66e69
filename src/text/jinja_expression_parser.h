#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace orthrus::jinja {

/// Recursive descent over a template's tokens: the expressions, lowest precedence first.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  enum TupleOptions { kPlain = 0, kNoConditional = 1, kParenthesized = 2 };

  ExpressionPtr expression();
  /// One expression, or a tuple of them where commas follow.
  ExpressionPtr tuple(int options = kPlain);
  /// What can be assigned to: a name, a tuple of them, or with `namespaces` a namespace's
  /// attribute.
  ExpressionPtr target(bool namespaces);
  std::string name_target();
  /// The filters `| a | b(1)` over captured text; `inline_start`: the first one without its bar.
  ExpressionPtr captured_filters(bool inline_start);

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool at_operator(std::string_view text) const;
  bool at_name(std::string_view text) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  void expect(TokenKind kind);
  [[noreturn]] void unexpected(std::string_view expected) const;

  /// Bounds the parser's own recursion.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }

   private:
    ExpressionParser& parser_;
  };

  struct SpecialName {
    std::string name;
    bool is_set;
  };
  std::vector<SpecialName> special_names_;  // varargs, kwargs and caller, in order

 private:
  ExpressionPtr conditional();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  void note_special(const std::string& name, bool is_set);
  ExpressionPtr primary(bool is_target = false, bool namespaces = false);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr bracketed(ExpressionPtr object);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  CallArguments call_arguments();
  void call_argument(CallArguments& arguments);
  bool at_tuple_end() const;
  ExpressionPtr binary_node(std::string op, int line, ExpressionPtr left, ExpressionPtr right);
  ExpressionPtr finish(ExpressionPtr node) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace orthrus::jinja
