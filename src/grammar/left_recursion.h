#pragma once

#include <vector>

#include "grammar/automaton.h"
#include "grammar/expressions.h"

namespace orthrus::grammar {

/// Whether each rule reads the empty text. Error(kUsage), with the rules, where one can call itself
/// before it has read a byte: nothing would bound its stacks.
std::vector<bool> refuse_left_recursion(const Expressions& expressions, const Automata& automata);

}  // namespace orthrus::grammar
