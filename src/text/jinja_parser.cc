#include "text/jinja_parser.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "text/jinja_expression_parser.h"
#include "text/jinja_scopes.h"

namespace orthrus::jinja {

namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Block whole() {
    Block block = statements({});
    declare_names(block);
    return block;
  }

 private:
  /// Statements up to a tag whose name is one of `ends`, which is then the current token (after its
  /// "{%"); without ends, up to the end of the template.
  Block statements(std::initializer_list<std::string_view> ends) {
    const Nesting nesting(*this);
    Block block;
    while (true) {
      const Token token = current();
      if (token.kind == TokenKind::kData) {
        take();
        block.push_back({.kind = StatementKind::kText, .line = token.line, .text = token.text});
      } else if (token.kind == TokenKind::kVariableBegin) {
        take();
        Statement output{.kind = StatementKind::kOutput, .line = token.line};
        output.expressions.push_back(tuple());
        expect(TokenKind::kVariableEnd);
        block.push_back(std::move(output));
      } else if (token.kind == TokenKind::kBlockBegin) {
        take();
        if (current().kind == TokenKind::kName &&
            std::find(ends.begin(), ends.end(), current().text) != ends.end()) {
          return block;
        }
        block.push_back(statement());
        expect(TokenKind::kBlockEnd);
      } else if (ends.size() > 0) {
        fail_at(token.line, "missing {{% {} %}}", *(ends.end() - 1));
      } else {
        return block;
      }
    }
  }

  /// The inside of a tag's block: from its "%}" on; the end tag's name is taken.
  Block body(std::initializer_list<std::string_view> ends) {
    skip_operator(":");
    expect(TokenKind::kBlockEnd);
    return statements(ends);
  }
  Block body_to(std::string_view end) {
    Block block = body({end});
    take();
    return block;
  }

  Statement statement() {
    if (current().kind != TokenKind::kName) unexpected("a tag's name");
    const Token tag = take();
    static constexpr std::pair<std::string_view, Statement (Parser::*)(int)> kTags[] = {
        {"for", &Parser::for_loop},     {"if", &Parser::if_chain},
        {"set", &Parser::assignment},   {"macro", &Parser::macro},
        {"call", &Parser::call_block},  {"filter", &Parser::filter_block},
        {"with", &Parser::with_block},  {"generation", &Parser::generation},
        {"break", &Parser::break_loop}, {"continue", &Parser::continue_loop},
        {"print", &Parser::print},      {"autoescape", &Parser::autoescape},
    };
    for (const auto& [name, parse_tag] : kTags) {
      if (tag.text == name) return (this->*parse_tag)(tag.line);
    }
    for (std::string_view name : {"extends", "block", "include", "import", "from"}) {
      if (tag.text != name) continue;
      fail_at(tag.line, "tag '{}' is not supported: a chat template stands alone", name);
    }
    fail_at(tag.line, "unknown tag '{}'", tag.text);
  }

  Statement for_loop(int line) {
    Statement loop{.kind = StatementKind::kFor, .line = line};
    loop.targets.push_back(target(false));
    if (binds_loop(*loop.targets[0])) fail_at(line, "cannot assign to 'loop'");
    expect_name("in");
    loop.expressions.push_back(tuple(kNoConditional));
    loop.expressions.push_back(skip_name("if") ? expression() : nullptr);
    loop.recursive = skip_name("recursive");
    ++loops_;
    loop.blocks.push_back(body({"else", "endfor"}));
    --loops_;
    if (take().text == "else") {
      loop.blocks.push_back(body_to("endfor"));
    } else {
      loop.blocks.emplace_back();
    }
    return loop;
  }

  static bool binds_loop(const Expression& node) {
    return node.name == "loop" || std::any_of(node.items.begin(), node.items.end(),
                                              [](const auto& item) { return binds_loop(*item); });
  }

  Statement if_chain(int line) {
    Statement chain{.kind = StatementKind::kIf, .line = line};
    while (true) {
      chain.expressions.push_back(tuple(kNoConditional));
      chain.blocks.push_back(body({"elif", "else", "endif"}));
      const std::string end = take().text;
      if (end == "elif") continue;
      if (end == "else") {
        chain.blocks.push_back(body_to("endif"));
      } else {
        chain.blocks.emplace_back();
      }
      return chain;
    }
  }

  Statement assignment(int line) {
    Statement set{.kind = StatementKind::kSet, .line = line};
    set.targets.push_back(target(true));
    if (skip_operator("=")) {
      set.expressions.push_back(tuple());
      return set;
    }
    set.kind = StatementKind::kSetBlock;
    set.expressions.push_back(captured_filters(false));
    set.blocks.push_back(body_to("endset"));
    return set;
  }

  void parameters(Signature& signature) {
    expect_operator("(");
    bool with_default = false;
    while (!at_operator(")")) {
      if (!signature.parameters.empty()) expect_operator(",");
      const int line = current().line;
      signature.parameters.push_back(name_target());
      const bool given = skip_operator("=");
      if (with_default && !given) fail_at(line, "a parameter without default follows one with");
      with_default = given;
      if (!given && signature.parameters.back() == "caller") {
        fail_at(line, "a parameter 'caller' needs a default");
      }
      signature.defaults.push_back(given ? expression() : nullptr);
    }
    take();
  }

  /// The body of a macro, and which of the special names it reads before it sets them.
  Block macro_body(Signature& signature, std::string_view end) {
    const size_t before = special_names_.size();
    const int loops = std::exchange(loops_, 0);
    Block block = body_to(end);
    loops_ = loops;
    for (const auto& [name, used] : {std::pair("varargs", &signature.uses_varargs),
                                     std::pair("kwargs", &signature.uses_kwargs),
                                     std::pair("caller", &signature.uses_caller)}) {
      const auto& own = signature.parameters;
      const auto first = std::find_if(
          special_names_.begin() + static_cast<ptrdiff_t>(before), special_names_.end(),
          [name = std::string_view(name)](const SpecialName& use) { return use.name == name; });
      *used = first != special_names_.end() && !first->is_set &&
              std::find(own.begin(), own.end(), name) == own.end();
    }
    return block;
  }

  Statement macro(int line) {
    Statement node{.kind = StatementKind::kMacro, .line = line};
    node.signature = std::make_unique<Signature>();
    node.signature->name = name_target();
    parameters(*node.signature);
    node.blocks.push_back(macro_body(*node.signature, "endmacro"));
    return node;
  }

  Statement call_block(int line) {
    Statement node{.kind = StatementKind::kCallBlock, .line = line};
    node.signature = std::make_unique<Signature>();
    node.signature->name = "caller";
    if (at_operator("(")) parameters(*node.signature);
    node.expressions.push_back(expression());
    if (node.expressions[0]->kind != ExpressionKind::kCall) fail_at(line, "expected a call");
    node.blocks.push_back(macro_body(*node.signature, "endcall"));
    return node;
  }

  Statement filter_block(int line) {
    Statement node{.kind = StatementKind::kFilterBlock, .line = line};
    node.expressions.push_back(captured_filters(true));
    node.blocks.push_back(body_to("endfilter"));
    return node;
  }

  Statement with_block(int line) {
    Statement node{.kind = StatementKind::kWith, .line = line};
    while (current().kind != TokenKind::kBlockEnd) {
      if (!node.targets.empty()) expect_operator(",");
      const int at = current().line;
      node.targets.push_back(std::make_unique<Expression>(
          Expression{.kind = ExpressionKind::kName, .line = at, .name = name_target()}));
      expect_operator("=");
      node.expressions.push_back(expression());
    }
    node.blocks.push_back(body_to("endwith"));
    return node;
  }

  /// Marks the assistant's text for training; in rendering only a scope.
  Statement generation(int line) {
    Statement node{.kind = StatementKind::kScope, .line = line};
    const int loops = std::exchange(loops_, 0);
    node.blocks.push_back(body_to("endgeneration"));
    loops_ = loops;
    return node;
  }

  Statement autoescape(int line) {
    const ExpressionPtr on = expression();
    if (on->kind != ExpressionKind::kConstant || on->value.truth()) {
      fail_at(line, "autoescape other than false is not supported: a prompt is no HTML");
    }
    Statement node{.kind = StatementKind::kScope, .line = line};
    node.blocks.push_back(body_to("endautoescape"));
    return node;
  }

  Statement break_loop(int line) { return jump(StatementKind::kBreak, line); }
  Statement continue_loop(int line) { return jump(StatementKind::kContinue, line); }
  Statement jump(StatementKind kind, int line) {
    if (loops_ == 0) {
      fail_at(line, "'{}' outside of a loop", kind == StatementKind::kBreak ? "break" : "continue");
    }
    return {.kind = kind, .line = line};
  }

  Statement print(int line) {
    Statement node{.kind = StatementKind::kOutput, .line = line};
    while (current().kind != TokenKind::kBlockEnd) {
      if (!node.expressions.empty()) expect_operator(",");
      node.expressions.push_back(expression());
    }
    return node;
  }

  int loops_ = 0;  // around the current statement, within its macro
};

}  // namespace

Block parse(std::string_view source) { return Parser(tokenize(source)).whole(); }

}  // namespace orthrus::jinja
