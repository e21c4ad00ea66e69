#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// The tokens of a vocabulary by their bytes, for masks of all that may follow. Immutable; one is
/// shared by all requests to a model. For 151,000 tokens it takes about 8 MB.
class TokenTrie {
 public:
  /// The nodes but for the root, each followed by its descendants.
  struct Node {
    uint32_t end = 0;           ///< index behind its last descendant
    uint32_t tokens_begin = 0;  ///< its tokens end where those of the next node begin
    uint16_t depth = 0;         ///< number of bytes up to and with its own, 1 or more
    uint8_t byte = 0;
  };

  /// `tokens` by id; an empty one is never allowed (special tokens, ids without a token). They are
  /// copied. Error(kInput) for a token of more than 65,535 bytes.
  explicit TokenTrie(std::span<const std::string_view> tokens);

  int32_t vocab_size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  std::string_view bytes(int32_t token) const {
    const auto index = static_cast<size_t>(token);
    return std::string_view(bytes_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  /// The tokens that end at a node.
  std::span<const int32_t> tokens(uint32_t index) const {
    const uint32_t begin = nodes_[index].tokens_begin;
    return std::span(order_).subspan(begin, nodes_[index + 1].tokens_begin - begin);
  }
  /// Bytes of the longest token.
  size_t max_depth() const { return max_depth_; }

 private:
  std::string bytes_;
  std::vector<size_t> offsets_;
  std::vector<int32_t> order_;
  std::vector<Node> nodes_;  // and one behind the last
  size_t max_depth_ = 0;
};

}  // namespace orthrus
