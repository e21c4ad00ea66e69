#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace orthrus {

TokenTrie::TokenTrie(std::span<const std::string_view> tokens) {
  offsets_.reserve(tokens.size() + 1);
  offsets_.push_back(0);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > std::numeric_limits<uint16_t>::max()) {
      fail("token {}: {} bytes, expected at most 65535", id, tokens[id].size());
    }
    bytes_ += tokens[id];
    offsets_.push_back(bytes_.size());
    max_depth_ = std::max(max_depth_, tokens[id].size());
    if (!tokens[id].empty()) order_.push_back(static_cast<int32_t>(id));
  }
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return tokens[static_cast<size_t>(a)] < tokens[static_cast<size_t>(b)];
  });

  std::vector<uint32_t> open;  // the nodes of the current token, by depth
  auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) {
      nodes_[open.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  };
  std::string_view previous;
  for (uint32_t rank = 0; rank < order_.size(); ++rank) {
    const std::string_view token = tokens[static_cast<size_t>(order_[rank])];
    const auto differs =
        std::mismatch(previous.begin(), previous.end(), token.begin(), token.end());
    close(static_cast<size_t>(differs.first - previous.begin()));
    while (open.size() < token.size()) {
      Node node;
      node.byte = static_cast<uint8_t>(token[open.size()]);
      node.tokens_begin = rank;
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      node.depth = static_cast<uint16_t>(open.size());
      nodes_.push_back(node);
    }
    previous = token;
  }
  close(0);
  Node behind;
  behind.tokens_begin = static_cast<uint32_t>(order_.size());
  nodes_.push_back(behind);
}

}  // namespace orthrus
