#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_builtins.h"
#include "text/jinja_value.h"

namespace orthrus::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star;         // *expression, or null
  ExpressionPtr double_star;  // **expression, or null
};

enum class ExpressionKind {
  kConstant,      // value
  kName,          // name
  kNamespaceRef,  // name, attribute: only as a target
  kTuple,         // items
  kList,          // items
  kDict,          // items: key, value, key, value, ...
  kConditional,   // items: condition, then, else or null
  kOr,            // items: left, right
  kAnd,           // items: left, right
  kNot,           // items: operand
  kCompare,       // items: n + 1 operands; operators: n of == != < <= > >= in notin
  kBinary,        // items: left, right; name: + - * / // % **
  kConcat,        // items
  kNegative,      // items: operand
  kPositive,      // items: operand
  kAttribute,     // items: object; name
  kItem,          // items: object, index
  kSlice,         // items: object, start, stop, step; the last three may be null
  kCall,          // items: callee; arguments
  kFilter,        // items: input, null where it is captured text; filter; arguments
  kTest,          // items: input; test; arguments
};

struct Expression {
  ExpressionKind kind;
  int line;
  int depth = 1;  // of the tree under it, bounded by the parser
  std::string name = {};
  std::string attribute = {};
  Value value = {};
  std::vector<ExpressionPtr> items = {};
  std::vector<std::string> operators = {};
  CallArguments arguments = {};
  Filter filter = nullptr;
  Test test = nullptr;
};

/// Of a macro or a call block.
struct Signature {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // one a parameter, null where it has none
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind {
  kText,         // text
  kOutput,       // expressions
  kFor,          // target; expressions: sequence, condition or null; blocks: body, else; recursive
  kIf,           // expressions: conditions; blocks: one each, then else
  kSet,          // target; expressions: value
  kSetBlock,     // target; expressions: filters or null; blocks: body
  kMacro,        // signature; blocks: body
  kCallBlock,    // signature; expressions: the call; blocks: body
  kFilterBlock,  // expressions: filters; blocks: body
  kWith,         // targets; expressions: values; blocks: body
  kScope,        // blocks: body
  kUndefine,     // targets: names that the scope sets later
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text = {};
  std::vector<ExpressionPtr> targets = {};
  std::vector<ExpressionPtr> expressions = {};
  std::vector<Block> blocks = {};
  std::unique_ptr<Signature> signature = {};
  bool recursive = false;
};

}  // namespace orthrus::jinja
