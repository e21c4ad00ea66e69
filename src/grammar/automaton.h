#pragma once

#include <cstdint>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/nfa.h"

namespace orthrus::grammar {

/// The automata of all rules, without empty moves; deterministic in bytes and calls where that
/// does not take many more states.
struct Automata {
  struct Edge {
    uint8_t first = 0;
    uint8_t last = 0;
    uint32_t target = 0;
  };
  struct Call {
    uint32_t rule = 0;
    uint32_t target = 0;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<Call> calls;
    bool final = false;
  };
  std::vector<State> states;
  std::vector<uint32_t> starts;  ///< by rule
};

/// Error(kUsage) where they become too large.
Automata make_automata(const Expressions& expressions);

}  // namespace orthrus::grammar
