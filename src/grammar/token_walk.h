#pragma once

#include <cstdint>
#include <vector>

#include "grammar/stack_sets.h"
#include "grammar/token_trie.h"

namespace orthrus::grammar {

/// Reads all tokens whose nodes lie in [begin, end), the descendants of a node of `depth`, from
/// `set`, without those whose beginning no stack reads. `visit(node, set)` sees every node that was
/// reached. `path` is memory to use: tokens.max_depth() + 1 elements.
template <typename Visit>
void walk_tokens(const TokenTrie& tokens, StackSets& sets, uint32_t begin, uint32_t end,
                 size_t depth, StackSets::Id set, std::vector<StackSets::Id>& path, Visit visit) {
  path[depth] = set;
  for (uint32_t index = begin; index < end;) {
    sets.spend(1);
    const TokenTrie::Node& node = tokens.node(index);
    const StackSets::Id next = sets.next(path[node.depth - 1u], node.byte);
    if (next == StackSets::kNone) {
      index = node.end;
      continue;
    }
    path[node.depth] = next;
    visit(index, next);
    ++index;
  }
}

}  // namespace orthrus::grammar
