#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/work.h"

namespace orthrus::grammar {

/// The automata of rules with empty moves, which lead to what follows a rule's expression. Equal
/// continuations are the same state, so that the common rests of expressions are built once.
class Nfa {
 public:
  enum class Kind : uint8_t { kAccept, kBytes, kCall, kSplit };
  struct State {
    Kind kind = Kind::kAccept;
    uint8_t first = 0;              ///< kBytes
    uint8_t last = 0;               ///< kBytes
    uint32_t rule = 0;              ///< kCall
    uint32_t target = 0;            ///< kBytes, kCall
    std::vector<uint32_t> targets;  ///< kSplit: empty moves
  };
  static constexpr uint32_t kAcceptState = 0;

  /// Both must outlive this.
  Nfa(const Expressions& expressions, Work& work);

  /// Replaces the states by those of one rule; the first of them. Error(kUsage) beyond
  /// Expressions::kMaxSize states of all rules so far, or the limit of the work.
  uint32_t build(Expressions::Rule rule);
  const State& state(uint32_t index) const { return states_[index]; }
  size_t size() const { return states_.size(); }

 private:
  using Expr = Expressions::Expr;

  uint32_t compile(Expr expr, uint32_t next);
  void spend(uint64_t operations);
  uint32_t compile_repeat(const Expressions::Node& node, uint32_t next);
  uint32_t bytes(uint8_t first, uint8_t last, uint32_t target);
  uint32_t split(std::vector<uint32_t> targets);
  uint32_t add(State state);
  /// States of a rule with what it calls, or kTooLarge where it may not be copied to its callers.
  uint64_t copied_size(Expressions::Rule rule, int depth);

  const Expressions& expressions_;
  Work& work_;
  std::vector<State> states_;
  uint64_t total_ = 0;
  std::unordered_map<uint64_t, uint32_t> compiled_;  // by expression and what follows it
  std::map<std::tuple<uint8_t, uint8_t, uint32_t>, uint32_t> bytes_;
  std::vector<uint64_t> copied_sizes_;
};

}  // namespace orthrus::grammar
