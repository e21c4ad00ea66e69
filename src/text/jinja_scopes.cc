#include "text/jinja_scopes.h"

#include <string>
#include <unordered_set>

#include "text/jinja_lexer.h"

namespace orthrus::jinja {

namespace {

/// The names of one scope, in the order of the text.
class Names {
 public:
  explicit Names(const Names* around) : around_(around) {}

  void load(const std::string& name) {
    if (!is_known(name)) known_.insert(name);
  }
  void declare(const std::string& name) { known_.insert(name); }
  /// In a branch the name may keep the value that it has around.
  void store(const std::string& name, bool in_branch) {
    const bool around = is_known(name);
    if (known_.insert(name).second && !around && !in_branch) fresh_.push_back(name);
  }
  const std::vector<std::string>& fresh() const { return fresh_; }

 private:
  bool is_known(const std::string& name) const {
    for (const Names* names = this; names != nullptr; names = names->around_) {
      if (names->known_.count(name) != 0) return true;
    }
    return false;
  }

  const Names* around_;
  std::unordered_set<std::string> known_;
  std::vector<std::string> fresh_;
};

void load_all(Names& names, const CallArguments& arguments);

void load_all(Names& names, const Expression* node) {
  if (node == nullptr) return;
  const bool is_name =
      node->kind == ExpressionKind::kName || node->kind == ExpressionKind::kNamespaceRef;
  if (is_name) names.load(node->name);
  for (const auto& item : node->items) load_all(names, item.get());
  load_all(names, node->arguments);
}

void load_all(Names& names, const CallArguments& arguments) {
  for (const auto& argument : arguments.positional) load_all(names, argument.get());
  for (const auto& [name, argument] : arguments.named) load_all(names, argument.get());
  load_all(names, arguments.star.get());
  load_all(names, arguments.double_star.get());
}

void load_all(Names& names, const std::vector<ExpressionPtr>& nodes) {
  for (const auto& node : nodes) load_all(names, node.get());
}

class Declarer {
 public:
  void scope(Block& block, Names& names) {
    collect(block, names, false);
    descend(block, names);
    if (names.fresh().empty()) return;
    Statement undefine{.kind = StatementKind::kUndefine, .line = 0};
    for (const std::string& name : names.fresh()) {
      undefine.targets.push_back(std::make_unique<Expression>(
          Expression{.kind = ExpressionKind::kName, .line = 0, .name = name}));
    }
    block.insert(block.begin(), std::move(undefine));
  }

 private:
  /// What the block itself loads and stores.
  void collect(const Block& block, Names& names, bool in_branch) {
    for (const Statement& statement : block) {
      switch (statement.kind) {
        case StatementKind::kIf:
          load_all(names, statement.expressions);
          for (const Block& branch : statement.blocks) collect(branch, names, true);
          break;
        case StatementKind::kFor:
          load_all(names, statement.expressions[0].get());
          break;
        case StatementKind::kSet:
          load_all(names, statement.expressions);
          store(*statement.targets[0], names, in_branch);
          break;
        case StatementKind::kSetBlock:
          store(*statement.targets[0], names, in_branch);
          break;
        case StatementKind::kMacro:
          names.store(statement.signature->name, in_branch);
          break;
        default:
          load_all(names, statement.expressions);
      }
    }
  }

  void store(const Expression& target, Names& names, bool in_branch) {
    if (target.kind == ExpressionKind::kNamespaceRef) {
      names.load(target.name);
    } else if (target.kind == ExpressionKind::kName) {
      if (loops_ > 0 && target.name == "loop") {
        fail_at(target.line, "cannot assign to 'loop' in a loop");
      }
      names.store(target.name, in_branch);
    }
    for (const auto& item : target.items) store(*item, names, in_branch);
  }

  static void declare(const Expression& target, Names& names) {
    if (target.kind == ExpressionKind::kName) names.declare(target.name);
    for (const auto& item : target.items) declare(*item, names);
  }

  /// The scopes in the block, each as its own.
  void descend(Block& block, const Names& around) {
    for (Statement& statement : block) {
      if (statement.kind == StatementKind::kIf) {
        for (Block& branch : statement.blocks) descend(branch, around);
        continue;
      }
      const bool is_loop = statement.kind == StatementKind::kFor;
      loops_ += is_loop;
      for (size_t i = 0; i < statement.blocks.size(); ++i) {
        Names names(&around);
        const bool has_target = is_loop ? i == 0 : statement.kind == StatementKind::kWith;
        if (has_target) {
          for (const auto& target : statement.targets) declare(*target, names);
        }
        if (is_loop && i == 0) names.declare("loop");
        if (statement.signature) declare_signature(*statement.signature, names);
        scope(statement.blocks[i], names);
      }
      loops_ -= is_loop;
    }
  }

  static void declare_signature(const Signature& signature, Names& names) {
    for (const std::string& name : signature.parameters) names.declare(name);
    for (const char* name : {"caller", "kwargs", "varargs"}) names.declare(name);
    load_all(names, signature.defaults);
  }

  int loops_ = 0;  // around the block, whatever lies between
};

}  // namespace

void declare_names(Block& block) {
  Names names(nullptr);
  Declarer().scope(block, names);
}

}  // namespace orthrus::jinja
