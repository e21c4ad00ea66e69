#include "text/jinja_interpreter.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus::jinja {

namespace {

constexpr int kMaxRecursion = 1000;  // evaluations inside one another
constexpr int kMaxScopes = 500;

}  // namespace

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : names) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

Interpreter::Deeper::Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
  if (interpreter_.depth_ >= kMaxRecursion) fail("recursion deeper than {}", kMaxRecursion);
  ++interpreter_.depth_;
}

/// Inside a scope below `parent`, until destroyed.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter& interpreter, std::shared_ptr<Scope> parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    auto scope = std::make_shared<Scope>();
    scope->depth = parent ? parent->depth + 1 : 0;
    if (scope->depth > kMaxScopes) fail("scopes nest deeper than {}", kMaxScopes);
    scope->parent = std::move(parent);
    interpreter_.scope_ = std::move(scope);
  }
  ~NewScope() { interpreter_.scope_ = std::move(outer_); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

Interpreter::~Interpreter() {
  for (const auto& object : namespaces_) static_cast<Mapping&>(*object).entries.clear();
  while (!kept_scopes_.empty()) kept_scopes_.pop_back();  // inner ones first
}

std::string Interpreter::render(const Block& block, Entries variables) {
  std::string out;
  out_ = &out;
  const NewScope context(*this, nullptr);
  for (auto& [name, value] : variables) scope_->names.emplace_back(name.string(), std::move(value));
  const NewScope top(*this, scope_);
  run(block);
  return out;
}

void Interpreter::write(std::string_view text) {
  budget_.bytes(text.size());
  out_->append(text);
}

/// What a filter or call block results in: joined to the output as it is, so nothing but a string.
void Interpreter::write_string(const Value& value) {
  if (!value.is_string()) fail("a block results in '{}', expected a string", value.type_name());
  write(value.string());
}

Interpreter::Flow Interpreter::run(const Block& block) {
  const Deeper deeper(*this);
  for (const Statement& statement : block) {
    budget_.step();
    line_ = statement.line;
    const Flow flow = run(statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::kText:
      write(statement.text);
      break;
    case StatementKind::kOutput:
      for (const auto& part : statement.expressions) write(text(evaluate(*part)));
      break;
    case StatementKind::kFor:
      run_for(statement, evaluate(*statement.expressions[0]), scope_, 0);
      break;
    case StatementKind::kIf:
      return run_if(statement);
    case StatementKind::kSet:
    case StatementKind::kSetBlock:
      run_set(statement);
      break;
    case StatementKind::kMacro:
      scope_->set(statement.signature->name, make_macro(statement));
      break;
    case StatementKind::kCallBlock:
      run_call_block(statement);
      break;
    case StatementKind::kFilterBlock:
      write_string(filtered(statement.expressions[0].get(), captured(statement.blocks[0])));
      break;
    case StatementKind::kWith:
      run_with(statement);
      break;
    case StatementKind::kScope: {
      const NewScope inner(*this, scope_);
      return run(statement.blocks[0]);
    }
    case StatementKind::kUndefine:
      for (const auto& name : statement.targets) {
        scope_->set(name->name, Value::undefined("'" + name->name + "' is undefined"));
      }
      break;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Statement& statement) {
  size_t branch = 0;
  while (branch < statement.expressions.size() &&
         !evaluate(*statement.expressions[branch]).truth()) {
    ++branch;
  }
  return run(statement.blocks[branch]);
}

void Interpreter::run_for(const Statement& statement, const Value& iterable,
                          std::shared_ptr<Scope> around, int64_t depth0) {
  const Deeper deeper(*this);
  const std::vector<Value> items = elements(budget_, iterable);
  budget_.bytes(items.size() * sizeof(Value));
  auto loop = std::make_shared<Loop>();
  loop->depth0 = depth0;
  for (const Value& each : items) loop->depth = std::max(loop->depth, 1 + each.depth());
  if (loop->depth > Budget::kMaxDepth) fail("values nest deeper than {}", Budget::kMaxDepth);
  const Value loop_value{std::shared_ptr<Object>(loop)};
  const Expression* condition = statement.expressions[1].get();
  loop->pull = [&, next = size_t{0}]() mutable -> std::optional<Value> {
    while (next < items.size()) {
      const Value& each = items[next++];
      if (condition == nullptr) return each;
      const NewScope inner(*this, around);
      assign(*statement.targets[0], each);
      if (evaluate(*condition).truth()) return each;
    }
    return std::nullopt;
  };
  if (statement.recursive) {
    loop->recurse = [&](const Value& inner) {
      return Value::string(captured([&] { run_for(statement, inner, around, depth0 + 1); }));
    };
  }
  struct Close {  // however the loop ends: what it refers to goes
    Loop& loop;
    ~Close() {
      loop.pull = nullptr;
      loop.recurse = nullptr;
      loop.changed.reset();
    }
  };

  bool any;
  {
    const Close close{*loop};
    any = run_turns(statement, *loop, loop_value, around);
  }
  if (any) return;
  const NewScope inner(*this, around);
  run(statement.blocks[1]);
}

/// Whether any turn came to its end: Jinja runs the else of a loop that only broke or continued.
bool Interpreter::run_turns(const Statement& statement, Loop& loop, const Value& loop_value,
                            const std::shared_ptr<Scope>& around) {
  bool any = false;
  while (loop.advance()) {
    const NewScope inner(*this, around);
    scope_->set("loop", loop_value);
    assign(*statement.targets[0], *loop.current);
    const Flow flow = run(statement.blocks[0]);
    if (flow == Flow::kBreak) break;
    any = any || flow == Flow::kNext;
  }
  return any;
}

std::string Interpreter::captured(const std::function<void()>& write_all) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  struct Restore {
    std::string*& out;
    std::string* outer;
    ~Restore() { out = outer; }
  } const restore{out_, outer};
  write_all();
  return text;
}

std::string Interpreter::captured(const Block& block) {
  return captured([&] {
    const NewScope inner(*this, scope_);
    run(block);
  });
}

Value Interpreter::filtered(const Expression* filters, std::string captured) {
  captured_ = Value::string(std::move(captured));  // counted as it was written
  return filters == nullptr ? captured_ : evaluate(*filters);
}

void Interpreter::run_set(const Statement& statement) {
  const Expression& target = *statement.targets[0];
  const Expression* expression = statement.expressions[0].get();
  const bool is_block = statement.kind == StatementKind::kSetBlock;
  assign(target,
         is_block ? filtered(expression, captured(statement.blocks[0])) : evaluate(*expression));
}

void Interpreter::run_with(const Statement& statement) {
  std::vector<Value> values = evaluate_all(statement.expressions);
  const NewScope inner(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(*statement.targets[i], values[i]);
  run(statement.blocks[0]);
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::kName) {
    scope_->set(target.name, value);
  } else if (target.kind == ExpressionKind::kNamespaceRef) {
    const Value* space = lookup(target.name);
    if (space == nullptr || !space->is(ObjectKind::kNamespace)) {
      fail("cannot set '{}.{}': '{}' is not a namespace", target.name, target.attribute,
           target.name);
    }
    put(budget_, space->as<Mapping>()->entries, string(target.attribute), value);
  } else {
    const std::vector<Value> items = elements(budget_, value);
    if (items.size() != target.items.size()) {
      fail("cannot unpack {} values into {} names", items.size(), target.items.size());
    }
    for (size_t i = 0; i < items.size(); ++i) assign(*target.items[i], items[i]);
  }
}

Value Interpreter::make_namespace(Entries entries) {
  budget_.bytes(sizeof(Mapping) + entries.size() * 2 * sizeof(Value));
  auto space = std::make_shared<Mapping>(ObjectKind::kNamespace);
  space->entries = std::move(entries);
  namespaces_.push_back(space);
  return Value(std::shared_ptr<Object>(std::move(space)));
}

Value Interpreter::make_macro(const Statement& statement) {
  budget_.bytes(sizeof(Macro) + sizeof(Scope));
  auto macro = std::make_shared<Macro>();
  macro->signature = statement.signature.get();
  macro->body = &statement.blocks[0];
  macro->scope = scope_;
  if (kept_scopes_.empty() || kept_scopes_.back() != scope_) kept_scopes_.push_back(scope_);
  return Value(std::shared_ptr<Object>(std::move(macro)));
}

void Interpreter::run_call_block(const Statement& statement) {
  const Expression& node = *statement.expressions[0];
  const Value callee = evaluate(*node.items[0]);
  Arguments arguments = evaluate_arguments(node.arguments);
  arguments.named.emplace_back("caller", make_macro(statement));
  write_string(call(callee, arguments));
}

/// Fills the scope of a call. A default may use the parameters before it.
void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments) {
  const Signature& signature = *macro.signature;
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  const auto take_named = [&](const std::string& name) -> std::optional<Value> {
    const auto found = std::find_if(named.begin(), named.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (found == named.end()) return std::nullopt;
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  };
  const size_t given = std::min(arguments.positional.size(), signature.parameters.size());
  for (const std::string& name : signature.parameters) {
    scope_->set(name, Value::undefined("parameter '" + name + "' was not provided"));
  }
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const std::string& name = signature.parameters[i];
    std::optional<Value> value;
    if (i < given) {
      value = arguments.positional[i];
    } else {
      value = take_named(name);
    }
    if (!value && signature.defaults[i]) value = evaluate(*signature.defaults[i]);
    if (value) scope_->set(name, *value);
  }
  if (signature.uses_caller) {
    const auto caller = take_named("caller");
    const bool given_one = caller && !caller->is_none();
    scope_->set("caller", given_one ? *caller : Value::undefined("No caller defined"));
  }
  if (!named.empty() && !signature.uses_kwargs) {
    fail("macro '{}' takes no argument '{}'", signature.name, named[0].first);
  }
  if (signature.uses_kwargs) {
    Entries entries;
    for (auto& [name, value] : named) entries.emplace_back(string(name), std::move(value));
    scope_->set("kwargs", make_dict(budget_, std::move(entries)));
  }
  if (arguments.positional.size() > given && !signature.uses_varargs) {
    fail("macro '{}' takes at most {} arguments, given {}", signature.name,
         signature.parameters.size(), arguments.positional.size());
  }
  if (signature.uses_varargs) {
    scope_->set("varargs",
                make_sequence(budget_, ObjectKind::kTuple,
                              {arguments.positional.begin() + static_cast<ptrdiff_t>(given),
                               arguments.positional.end()}));
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Deeper deeper(*this);
  const NewScope inner(*this, macro.scope.lock());
  bind_parameters(macro, arguments);
  return Value::string(captured(*macro.body));
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  budget_.step();
  if (callee.is_undefined()) fail("{}", callee.why_undefined());
  if (callee.is(ObjectKind::kFunction)) return callee.as<Function>()->call(*this, arguments);
  if (callee.is(ObjectKind::kLoop)) {
    const auto loop = callee.as<Loop>();
    if (!loop->recurse) fail("only a running loop that is marked 'recursive' can be called");
    return loop->recurse(Bound("loop()", arguments, {"iterable"}, 1)[0]);
  }
  if (!callee.is(ObjectKind::kMacro)) fail("'{}' is not callable", callee.type_name());
  return call_macro(*callee.as<Macro>(), arguments);
}

Value Interpreter::evaluate(const Expression& node) {
  const Deeper deeper(*this);
  budget_.step();
  line_ = node.line;
  const auto operand = [&](size_t i) { return evaluate(*node.items[i]); };
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.value;
    case ExpressionKind::kName:
    case ExpressionKind::kNamespaceRef:
      return evaluate_name(node);
    case ExpressionKind::kTuple:
      return make_sequence(budget_, ObjectKind::kTuple, evaluate_all(node.items));
    case ExpressionKind::kList:
      return make_sequence(budget_, ObjectKind::kList, evaluate_all(node.items));
    case ExpressionKind::kDict:
      return evaluate_dict(node);
    case ExpressionKind::kConditional:
      if (operand(0).truth()) return operand(1);
      return node.items[2] ? operand(2)
                           : Value::undefined("the inline if has no else and is false");
    case ExpressionKind::kOr: {
      Value left = operand(0);
      return left.truth() ? left : operand(1);
    }
    case ExpressionKind::kAnd: {
      Value left = operand(0);
      return left.truth() ? operand(1) : left;
    }
    case ExpressionKind::kNot:
      return Value(!operand(0).truth());
    case ExpressionKind::kCompare:
      return Value(evaluate_comparison(node));
    case ExpressionKind::kBinary: {
      const Value left = operand(0);
      return binary(budget_, node.name, left, operand(1));
    }
    case ExpressionKind::kConcat:
      return evaluate_concat(node);
    case ExpressionKind::kNegative:
      return negative(operand(0));
    case ExpressionKind::kPositive:
      return negative(negative(operand(0)));
    case ExpressionKind::kAttribute:
      return attribute(operand(0), node.name);
    case ExpressionKind::kItem: {
      const Value object = operand(0);
      return item(object, operand(1));
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(node);
    case ExpressionKind::kCall:
      return evaluate_call(node);
    case ExpressionKind::kFilter:
      return evaluate_filter(node);
    case ExpressionKind::kTest: {
      const Value input = operand(0);
      return Value(node.test(*this, input, evaluate_arguments(node.arguments)));
    }
  }
  return Value();
}

}  // namespace orthrus::jinja
