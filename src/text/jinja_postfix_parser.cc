// What follows an operand: subscripts, calls, filters, tests.
#include <fmt/format.h>

#include "text/jinja_expression_parser.h"

namespace orthrus::jinja {

namespace {

ExpressionPtr around(ExpressionKind kind, int line, ExpressionPtr inner) {
  auto node = std::make_unique<Expression>(Expression{.kind = kind, .line = line});
  node->items.push_back(std::move(inner));
  return node;
}

}  // namespace

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      node = subscript(std::move(node));
    } else if (at_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (at_operator("|")) {
      take();
      node = filter(std::move(node));
    } else if (at_name("is")) {
      node = test(std::move(node));
    } else if (at_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const Token token = take();
  if (token.text == "[") return bracketed(std::move(object));
  const Token attribute = take();
  if (attribute.kind == TokenKind::kName) {
    ExpressionPtr node = around(ExpressionKind::kAttribute, token.line, std::move(object));
    node->name = attribute.text;
    return finish(std::move(node));
  }
  if (attribute.kind != TokenKind::kInteger) {
    fail_at(attribute.line, "expected a name or a number after '.'");
  }
  ExpressionPtr node = around(ExpressionKind::kItem, token.line, std::move(object));
  node->items.push_back(std::make_unique<Expression>(Expression{
      .kind = ExpressionKind::kConstant, .line = attribute.line, .value = attribute.number}));
  return finish(std::move(node));
}

/// object[index] and object[start:stop:step], after the bracket.
ExpressionPtr ExpressionParser::bracketed(ExpressionPtr object) {
  const Nesting nesting(*this);
  const int line = current().line;
  ExpressionPtr first = at_operator(":") ? nullptr : expression();
  if (first && !at_operator(":")) {
    if (at_operator(",")) fail_at(line, "a tuple is not supported as a subscript");
    expect_operator("]");
    ExpressionPtr node = around(ExpressionKind::kItem, line, std::move(object));
    node->items.push_back(std::move(first));
    return finish(std::move(node));
  }
  ExpressionPtr node = around(ExpressionKind::kSlice, line, std::move(object));
  node->items.push_back(std::move(first));
  while (node->items.size() < 4 && skip_operator(":")) {
    const bool given = !at_operator(":") && !at_operator("]");
    node->items.push_back(given ? expression() : nullptr);
  }
  while (node->items.size() < 4) node->items.push_back(nullptr);
  expect_operator("]");
  return finish(std::move(node));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  ExpressionPtr node = around(ExpressionKind::kCall, current().line, std::move(callee));
  node->arguments = call_arguments();
  return finish(std::move(node));
}

CallArguments ExpressionParser::call_arguments() {
  const Nesting nesting(*this);
  expect_operator("(");
  CallArguments arguments;
  while (!at_operator(")")) {
    call_argument(arguments);
    if (!at_operator(")")) expect_operator(",");
  }
  take();
  return arguments;
}

void ExpressionParser::call_argument(CallArguments& arguments) {
  const int line = current().line;
  const bool named = current().kind == TokenKind::kName && look().kind == TokenKind::kOperator &&
                     look().text == "=";
  bool in_order = arguments.double_star == nullptr;
  if (skip_operator("*")) {
    in_order = in_order && arguments.star == nullptr;
    arguments.star = expression();
  } else if (skip_operator("**")) {
    arguments.double_star = expression();
  } else if (named) {
    std::string name = take().text;
    take();
    for (const auto& [other, value] : arguments.named) in_order = in_order && other != name;
    arguments.named.emplace_back(std::move(name), expression());
  } else {
    in_order = in_order && arguments.star == nullptr && arguments.named.empty();
    arguments.positional.push_back(expression());
  }
  if (!in_order) fail_at(line, "arguments of a call are doubled or out of order");
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr input) {
  const Token name = current();
  expect(TokenKind::kName);
  ExpressionPtr node = around(ExpressionKind::kFilter, name.line, std::move(input));
  node->name = name.text;
  node->filter = find_filter(name.text);
  if (node->filter == nullptr) fail_at(name.line, "unknown filter '{}'", name.text);
  if (at_operator("(")) node->arguments = call_arguments();
  return finish(std::move(node));
}

ExpressionPtr ExpressionParser::captured_filters(bool inline_start) {
  ExpressionPtr node = inline_start ? filter(nullptr) : nullptr;
  while (skip_operator("|")) node = filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr input) {
  const int line = take().line;
  const bool negated = skip_name("not");
  const Token name = current();
  expect(TokenKind::kName);
  ExpressionPtr node = around(ExpressionKind::kTest, line, std::move(input));
  node->name = name.text;
  node->test = find_test(name.text);
  if (node->test == nullptr) fail_at(name.line, "unknown test '{}'", name.text);
  const TokenKind kind = current().kind;
  if (at_operator("(")) {
    node->arguments = call_arguments();
  } else if (kind == TokenKind::kString || kind == TokenKind::kInteger ||
             kind == TokenKind::kFloat || at_operator("[") || at_operator("{") ||
             (kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"))) {
    if (at_name("is")) fail_at(line, "tests cannot be chained with 'is'");
    node->arguments.positional.push_back(postfix(primary()));
  }
  node = finish(std::move(node));
  return negated ? finish(around(ExpressionKind::kNot, line, std::move(node))) : std::move(node);
}

}  // namespace orthrus::jinja
