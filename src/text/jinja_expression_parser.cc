#include "text/jinja_expression_parser.h"

#include <algorithm>

namespace orthrus::jinja {

namespace {

// A level of parentheses takes three of these, and a dozen calls.
constexpr int kMaxNesting = 300;
constexpr int kMaxDepth = 400;

ExpressionPtr node_of(ExpressionKind kind, int line) {
  return std::make_unique<Expression>(Expression{.kind = kind, .line = line});
}

ExpressionPtr node_of(ExpressionKind kind, int line, ExpressionPtr first,
                      ExpressionPtr second = nullptr) {
  ExpressionPtr node = node_of(kind, line);
  node->items.push_back(std::move(first));
  if (second) node->items.push_back(std::move(second));
  return node;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    fail_at(parser.current().line, "nested deeper than {}", kMaxNesting);
  }
}

Token ExpressionParser::take() {
  Token token = current();
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool ExpressionParser::at_operator(std::string_view text) const {
  return current().kind == TokenKind::kOperator && current().text == text;
}

bool ExpressionParser::at_name(std::string_view text) const {
  return current().kind == TokenKind::kName && current().text == text;
}

bool ExpressionParser::skip_operator(std::string_view text) {
  const bool there = at_operator(text);
  if (there) ++at_;
  return there;
}

bool ExpressionParser::skip_name(std::string_view text) {
  const bool there = at_name(text);
  if (there) ++at_;
  return there;
}

void ExpressionParser::unexpected(std::string_view expected) const {
  fail_at(current().line, "expected {}, found {}", expected, describe(current()));
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) unexpected("'" + std::string(text) + "'");
}

void ExpressionParser::expect_name(std::string_view text) {
  if (!skip_name(text)) unexpected("'" + std::string(text) + "'");
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind) unexpected(describe(Token{kind, "name", 0}));
  take();
}

/// Sets the depth of a node whose parts are complete.
ExpressionPtr ExpressionParser::finish(ExpressionPtr node) const {
  const auto count = [&](const ExpressionPtr& part) {
    if (part) node->depth = std::max(node->depth, 1 + part->depth);
  };
  for (const auto& item : node->items) count(item);
  for (const auto& argument : node->arguments.positional) count(argument);
  for (const auto& [name, argument] : node->arguments.named) count(argument);
  count(node->arguments.star);
  count(node->arguments.double_star);
  if (node->depth > kMaxDepth) fail_at(node->line, "expression nested deeper than {}", kMaxDepth);
  return node;
}

ExpressionPtr ExpressionParser::expression() {
  const Nesting nesting(*this);
  return conditional();
}

ExpressionPtr ExpressionParser::conditional() {
  const Nesting nesting(*this);
  ExpressionPtr node = disjunction();
  while (at_name("if")) {
    const int line = take().line;
    ExpressionPtr whole = node_of(ExpressionKind::kConditional, line, disjunction());
    whole->items.push_back(std::move(node));
    whole->items.push_back(skip_name("else") ? conditional() : nullptr);
    node = finish(std::move(whole));
  }
  return node;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr node = conjunction();
  while (at_name("or")) {
    const int line = take().line;
    node = finish(node_of(ExpressionKind::kOr, line, std::move(node), conjunction()));
  }
  return node;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr node = negation();
  while (at_name("and")) {
    const int line = take().line;
    node = finish(node_of(ExpressionKind::kAnd, line, std::move(node), negation()));
  }
  return node;
}

ExpressionPtr ExpressionParser::negation() {
  if (!at_name("not")) return comparison();
  const Nesting nesting(*this);
  const int line = take().line;
  return finish(node_of(ExpressionKind::kNot, line, negation()));
}

ExpressionPtr ExpressionParser::comparison() {
  static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  ExpressionPtr node = node_of(ExpressionKind::kCompare, current().line, sum());
  while (true) {
    const bool ordinary = current().kind == TokenKind::kOperator &&
                          std::find(std::begin(kOperators), std::end(kOperators), current().text) !=
                              std::end(kOperators);
    if (ordinary) {
      node->operators.push_back(take().text);
    } else if (skip_name("in")) {
      node->operators.push_back("in");
    } else if (at_name("not") && look().kind == TokenKind::kName && look().text == "in") {
      take();
      take();
      node->operators.push_back("notin");
    } else {
      break;
    }
    node->items.push_back(sum());
  }
  return node->operators.empty() ? std::move(node->items[0]) : finish(std::move(node));
}

ExpressionPtr ExpressionParser::binary_node(std::string op, int line, ExpressionPtr left,
                                            ExpressionPtr right) {
  ExpressionPtr node = node_of(ExpressionKind::kBinary, line, std::move(left), std::move(right));
  node->name = std::move(op);
  return finish(std::move(node));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr node = concatenation();
  while (at_operator("+") || at_operator("-")) {
    Token op = take();
    node = binary_node(std::move(op.text), op.line, std::move(node), concatenation());
  }
  return node;
}

ExpressionPtr ExpressionParser::concatenation() {
  ExpressionPtr node = node_of(ExpressionKind::kConcat, current().line, product());
  while (skip_operator("~")) node->items.push_back(product());
  return node->items.size() == 1 ? std::move(node->items[0]) : finish(std::move(node));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr node = power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    Token op = take();
    node = binary_node(std::move(op.text), op.line, std::move(node), power());
  }
  return node;
}

/// Left-associative and looser than the minus, unlike Python's: so it is in Jinja's grammar. What
/// Jinja compiles to is Python again, with each power in parentheses of its own.
ExpressionPtr ExpressionParser::power() {
  ExpressionPtr node = unary(true);
  while (at_operator("**")) {
    Token op = take();
    node = binary_node(std::move(op.text), op.line, std::move(node), unary(true));
  }
  return node;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPtr node;
  if (at_operator("-") || at_operator("+")) {
    const Token sign = take();
    const auto kind = sign.text == "-" ? ExpressionKind::kNegative : ExpressionKind::kPositive;
    node = finish(node_of(kind, sign.line, unary(false)));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

void ExpressionParser::note_special(const std::string& name, bool is_set) {
  const bool special = name == "varargs" || name == "kwargs" || name == "caller";
  if (special) special_names_.push_back({name, is_set});
}

ExpressionPtr ExpressionParser::primary(bool is_target, bool namespaces) {
  const Token token = current();
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  if (skip_operator("(")) {
    ExpressionPtr node = tuple(kParenthesized);
    expect_operator(")");
    return node;
  }
  ExpressionPtr node = node_of(ExpressionKind::kConstant, token.line);
  if (token.kind == TokenKind::kString) {
    std::string text;
    while (current().kind == TokenKind::kString) text += take().text;
    node->value = Value::string(std::move(text));
  } else if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
    node->value = take().number;
  } else if (token.kind == TokenKind::kName) {
    take();
    if (token.text == "true" || token.text == "True") {
      node->value = Value(true);
    } else if (token.text == "false" || token.text == "False") {
      node->value = Value(false);
    } else if (token.text != "none" && token.text != "None") {
      node->kind = ExpressionKind::kName;
      node->name = token.text;
      note_special(token.text, is_target);
      if (namespaces && skip_operator(".")) {
        node->kind = ExpressionKind::kNamespaceRef;
        node->attribute = current().text;
        expect(TokenKind::kName);
      }
    }
  } else {
    unexpected("an expression");
  }
  return node;
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr node = node_of(ExpressionKind::kList, take().line);
  while (!at_operator("]")) {
    if (!node->items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    node->items.push_back(expression());
  }
  take();
  return finish(std::move(node));
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr node = node_of(ExpressionKind::kDict, take().line);
  while (!at_operator("}")) {
    if (!node->items.empty()) expect_operator(",");
    if (at_operator("}")) break;
    node->items.push_back(expression());
    expect_operator(":");
    node->items.push_back(expression());
  }
  take();
  return finish(std::move(node));
}

bool ExpressionParser::at_tuple_end() const {
  return current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
         at_operator(")");
}

ExpressionPtr ExpressionParser::tuple(int options) {
  ExpressionPtr node = node_of(ExpressionKind::kTuple, current().line);
  const Nesting nesting(*this);
  bool is_tuple = false;
  while (!at_tuple_end() && !(options & kNoConditional && at_name("recursive"))) {
    node->items.push_back(options & kNoConditional ? disjunction() : conditional());
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && node->items.size() == 1) return std::move(node->items[0]);
  if (node->items.empty() && !(options & kParenthesized)) unexpected("an expression");
  return finish(std::move(node));
}

ExpressionPtr ExpressionParser::target(bool namespaces) {
  ExpressionPtr node = node_of(ExpressionKind::kTuple, current().line);
  const Nesting nesting(*this);
  bool is_tuple = false;
  while (!at_tuple_end() && !at_name("in")) {
    const bool parenthesized = skip_operator("(");
    node->items.push_back(parenthesized ? target(namespaces) : primary(true, namespaces));
    if (parenthesized) expect_operator(")");
    const ExpressionKind kind = node->items.back()->kind;
    if (kind != ExpressionKind::kName && kind != ExpressionKind::kNamespaceRef &&
        kind != ExpressionKind::kTuple) {
      fail_at(node->line, "cannot assign to this expression");
    }
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && node->items.size() == 1) return std::move(node->items[0]);
  if (node->items.empty()) unexpected("a name");
  return finish(std::move(node));
}

std::string ExpressionParser::name_target() {
  std::string name = current().text;
  expect(TokenKind::kName);
  static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
    fail_at(current().line, "cannot assign to '{}'", name);
  }
  return name;
}

}  // namespace orthrus::jinja
