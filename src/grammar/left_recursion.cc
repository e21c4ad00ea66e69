#include "grammar/left_recursion.h"

#include <algorithm>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus::grammar {
namespace {

struct Beginning {
  bool nullable = false;
  std::vector<uint32_t> called;  ///< rules called before a byte is read
};

class Beginnings {
 public:
  Beginnings(const Automata& automata, std::vector<bool>& nullable)
      : automata_(automata), nullable_(nullable), marks_(automata.states.size(), 0) {}

  Beginning of(uint32_t rule) {
    Beginning out;
    ++mark_;
    std::vector<uint32_t> todo{automata_.starts[rule]};
    while (!todo.empty()) {
      const uint32_t index = todo.back();
      todo.pop_back();
      if (marks_[index] == mark_) continue;
      marks_[index] = mark_;
      const Automata::State& state = automata_.states[index];
      out.nullable |= state.final;
      for (const Automata::Call& call : state.calls) {
        out.called.push_back(call.rule);
        if (nullable_[call.rule]) todo.push_back(call.target);
      }
    }
    std::sort(out.called.begin(), out.called.end());
    out.called.erase(std::unique(out.called.begin(), out.called.end()), out.called.end());
    return out;
  }

 private:
  const Automata& automata_;
  std::vector<bool>& nullable_;
  std::vector<uint32_t> marks_;
  uint32_t mark_ = 0;
};

[[noreturn]] void fail_cycle(const Expressions& expressions, const std::vector<uint32_t>& cycle) {
  constexpr size_t kNamed = 6;
  std::string chain, where;
  for (size_t i = 0; i < cycle.size(); ++i) {
    const auto& rule = expressions.rules()[cycle[i]];
    if (where.empty()) where = rule.where;
    if (i < kNamed) chain += printable(rule.name) + " -> ";
  }
  if (cycle.size() > kNamed) chain += "... -> ";
  fail_usage("{}: {}: left recursion: {}{}", expressions.what(), where, chain,
             printable(expressions.rules()[cycle[0]].name));
}

/// Depth-first, with a stack of its own.
void refuse_cycles(const Expressions& expressions,
                   const std::vector<std::vector<uint32_t>>& called) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> seen(called.size(), kNew);
  std::vector<uint32_t> path;
  std::vector<size_t> next(called.size(), 0);
  for (uint32_t first = 0; first < called.size(); ++first) {
    if (seen[first] != kNew) continue;
    path = {first};
    seen[first] = kOpen;
    while (!path.empty()) {
      const uint32_t rule = path.back();
      if (next[rule] == called[rule].size()) {
        seen[rule] = kDone;
        path.pop_back();
        continue;
      }
      const uint32_t callee = called[rule][next[rule]++];
      if (seen[callee] == kOpen) {
        path.erase(path.begin(), std::find(path.begin(), path.end(), callee));
        fail_cycle(expressions, path);
      }
      if (seen[callee] == kNew) {
        seen[callee] = kOpen;
        path.push_back(callee);
      }
    }
  }
}

}  // namespace

std::vector<bool> refuse_left_recursion(const Expressions& expressions, const Automata& automata) {
  const auto rules = static_cast<uint32_t>(automata.starts.size());
  std::vector<bool> nullable(rules, false);
  std::vector<std::vector<uint32_t>> called(rules), waiting(rules);
  Beginnings beginnings(automata, nullable);
  std::vector<uint32_t> todo;
  for (uint32_t rule = rules; rule-- > 0;) todo.push_back(rule);
  while (!todo.empty()) {
    const uint32_t rule = todo.back();
    todo.pop_back();
    if (nullable[rule]) continue;
    const Beginning beginning = beginnings.of(rule);
    if (beginning.nullable) {
      nullable[rule] = true;
      todo.insert(todo.end(), waiting[rule].begin(), waiting[rule].end());
      waiting[rule].clear();
    } else {
      for (const uint32_t callee : beginning.called) {
        if (!nullable[callee]) waiting[callee].push_back(rule);
      }
    }
  }
  for (uint32_t rule = 0; rule < rules; ++rule) called[rule] = beginnings.of(rule).called;
  refuse_cycles(expressions, called);
  return nullable;
}

}  // namespace orthrus::grammar
