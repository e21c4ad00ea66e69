#include "grammar/left_recursion.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus::grammar {
namespace {

/// The states that rules reach before a byte is read. Each is looked at once, and so is each call:
/// what follows the call of a rule that may turn out to be empty waits for that.
class Beginnings {
 public:
  explicit Beginnings(const Automata& automata)
      : nullable(automata.starts.size(), false),
        called(automata.starts.size()),
        automata_(automata),
        waiting_(automata.starts.size()),
        seen_(automata.states.size(), false) {
    for (uint32_t rule = 0; rule < automata.starts.size(); ++rule) {
      todo_.push_back({automata.starts[rule], rule});
      while (!todo_.empty()) {
        const Place place = todo_.back();
        todo_.pop_back();
        if (!seen_[place.state]) look_at(place);
      }
    }
    for (auto& rules : called) {
      std::sort(rules.begin(), rules.end());
      rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
    }
  }

  std::vector<bool> nullable;                 ///< by rule
  std::vector<std::vector<uint32_t>> called;  ///< by rule: the rules called before a byte is read

 private:
  struct Place {
    uint32_t state = 0;
    uint32_t rule = 0;  // that it is a state of
  };

  void look_at(const Place& place) {
    seen_[place.state] = true;
    const Automata::State& state = automata_.states[place.state];
    if (state.final && !nullable[place.rule]) {
      nullable[place.rule] = true;
      auto& waiting = waiting_[place.rule];
      todo_.insert(todo_.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    for (const Automata::Call& call : state.calls) {
      called[place.rule].push_back(call.rule);
      (nullable[call.rule] ? todo_ : waiting_[call.rule]).push_back({call.target, place.rule});
    }
  }

  const Automata& automata_;
  std::vector<std::vector<Place>> waiting_;
  std::vector<bool> seen_;
  std::vector<Place> todo_;
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
  Beginnings beginnings(automata);
  refuse_cycles(expressions, beginnings.called);
  return std::move(beginnings.nullable);
}

}  // namespace orthrus::grammar
