#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace orthrus::jinja {

/// The variables of a template, a macro call or one turn of a loop.
struct Scope {
  std::vector<std::pair<std::string, Value>> names;
  std::shared_ptr<Scope> parent;
  int depth = 0;

  void set(std::string_view name, Value value);
};

/// A macro sees the scope it was defined in; the interpreter keeps that scope alive.
struct Macro : Object {
  const Signature* signature;
  const Block* body;
  std::weak_ptr<Scope> scope;
  Macro() : Object(ObjectKind::kMacro) {}
};

/// What raise_exception throws: a message of the template's own.
struct RaisedByTemplate {
  std::string message;
};

/// One rendering of a template.
class Interpreter {
 public:
  /// Bounds the native stack: one for each evaluation inside another.
  class Deeper {
   public:
    explicit Deeper(Interpreter& interpreter);
    ~Deeper() { --interpreter_.depth_; }

   private:
    Interpreter& interpreter_;
  };

  Interpreter() = default;
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Throws Error(kInput) and RaisedByTemplate; line() then says where.
  std::string render(const Block& block, Entries variables);
  int line() const { return line_; }

  Budget& budget() { return budget_; }
  Value call(const Value& callee, const Arguments& arguments);
  /// object.name: attributes before items.
  Value attribute(const Value& object, std::string_view name);
  /// object[key]: items before attributes.
  Value item(const Value& object, const Value& key);
  Value make_namespace(Entries entries);
  std::string text(const Value& value) { return to_string(budget_, value); }
  Value string(std::string text) { return make_string(budget_, std::move(text)); }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class NewScope;

  Flow run(const Block& block);
  Flow run(const Statement& statement);
  Flow run_if(const Statement& statement);
  void run_for(const Statement& statement, const Value& iterable, std::shared_ptr<Scope> around,
               int64_t depth0);
  bool run_turns(const Statement& statement, Loop& loop, const Value& loop_value,
                 const std::shared_ptr<Scope>& around);
  void run_set(const Statement& statement);
  void run_with(const Statement& statement);
  void run_call_block(const Statement& statement);
  Value filtered(const Expression* filters, std::string captured);
  std::string captured(const std::function<void()>& write_all);
  std::string captured(const Block& block);
  void assign(const Expression& target, const Value& value);
  Value make_macro(const Statement& statement);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const Macro& macro, const Arguments& arguments);
  void write(std::string_view text);
  void write_string(const Value& value);

  Value evaluate(const Expression& node);
  Value evaluate_name(const Expression& node);
  Value evaluate_dict(const Expression& node);
  bool evaluate_comparison(const Expression& node);
  bool compare_pair(const std::string& op, const Value& a, const Value& b);
  Value evaluate_concat(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_filter(const Expression& node);
  Value evaluate_call(const Expression& node);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& nodes);
  Arguments evaluate_arguments(const CallArguments& nodes);
  const Value* lookup(std::string_view name) const;
  std::optional<Value> macro_attribute(const Value& object, std::string_view name);
  std::optional<Value> attribute_only(const Value& object, std::string_view name);
  std::optional<Value> item_only(const Value& object, const Value& key);

  Budget budget_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> kept_scopes_;  // those macros were defined in
  std::vector<std::shared_ptr<Object>> namespaces_;  // may hold each other: emptied at the end
  std::string* out_ = nullptr;
  Value captured_;  // what the innermost filter of a captured text reads
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace orthrus::jinja
