#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_set>

#include "cache/block_pool.h"

namespace orthrus {

/// Full blocks of keys and values by the tokens they were computed from, so that sequences with a
/// common beginning share them. A block is known by its tokens and its predecessor, both compared,
/// not only hashed: a hit is the very prefix. Blocks that no sequence uses stay until room is
/// needed; those used longest ago go first, a block always after its successors. Not thread-safe.
class PrefixIndex {
 public:
  struct Node {
    Node* parent = nullptr;  ///< null: the block of the first tokens
    std::array<int32_t, kKvBlockTokens> tokens{};
    std::byte* block = nullptr;
    int64_t users = 0;
    std::list<Node*>::iterator idle;  ///< valid where users == 0
  };
  using BlockTokens = std::span<const int32_t, kKvBlockTokens>;

  /// The pool must outlive the index.
  explicit PrefixIndex(BlockPool& pool);
  /// Gives all blocks back; no sequence may use one any more.
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  /// The block that continues `parent` with these tokens, or null.
  Node* find(const Node* parent, BlockTokens tokens) const;
  /// Takes over a block of the pool whose tokens are all committed; the caller becomes its user.
  /// Where an equal one is known, that one is the result and `block` goes back to the pool: both
  /// hold the same bits (docs/numerics.md).
  Node* insert(Node* parent, BlockTokens tokens, std::byte* block);
  void use(Node& node);
  /// The last blocks of a sequence first.
  void release(Node& node);

  /// Drops idle blocks until the pool can give `blocks`, if that is possible; whether it is.
  bool make_room(int64_t blocks);
  int64_t idle_blocks() const { return static_cast<int64_t>(idle_.size()); }
  int64_t known_blocks() const { return static_cast<int64_t>(nodes_.size()); }

 private:
  struct Key {
    const Node* parent;
    BlockTokens tokens;
  };
  /// Seeded by chance, so that no prompt can be made to collide with others.
  struct Hash {
    using is_transparent = void;
    uint64_t seed;
    size_t operator()(const Key& key) const;
    size_t operator()(const std::unique_ptr<Node>& node) const {
      return (*this)(Key{node->parent, node->tokens});
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const std::unique_ptr<Node>& b) const;
    bool operator()(const std::unique_ptr<Node>& a, const Key& b) const { return (*this)(b, a); }
    bool operator()(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) const {
      return (*this)(Key{a->parent, a->tokens}, b);
    }
  };
  void drop(Node& node);

  BlockPool& pool_;
  std::unordered_set<std::unique_ptr<Node>, Hash, Equal> nodes_;
  std::list<Node*> idle_;  // the one to drop first in front
};

}  // namespace orthrus
