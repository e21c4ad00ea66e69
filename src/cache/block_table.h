#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_pool.h"
#include "cache/prefix_index.h"

namespace orthrus {

/// The KV cache of one sequence: its blocks in order and how many tokens are committed. Both views
/// read it; only the AR view writes. With a PrefixIndex, its first blocks may be shared with other
/// sequences: those are full, committed and never written again. Returns its blocks when destroyed;
/// move-only.
class BlockTable {
 public:
  /// Pool and index must outlive the table; without an index nothing is shared.
  explicit BlockTable(BlockPool& pool, PrefixIndex* index = nullptr)
      : pool_(&pool), index_(index) {}
  ~BlockTable();
  BlockTable(BlockTable&&) noexcept;
  BlockTable& operator=(BlockTable&&) noexcept;

  int64_t length() const { return length_; }  ///< committed tokens
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kKvBlockTokens; }
  std::span<std::byte* const> blocks() const { return blocks_; }
  size_t bytes() const { return blocks_.size() * pool_->layout().block_bytes(); }

  /// Blocks that reserve(tokens) would take from the pool.
  int64_t blocks_missing(int64_t tokens) const;
  /// Makes room for `tokens` tokens in all. Error(kInput) where the pool has no more blocks.
  void reserve(int64_t tokens);
  /// Sets the committed length: forward after a pass, or back (the rest is simply overwritten
  /// later; whole blocks beyond it stay with the sequence), but not into shared blocks.
  void set_length(int64_t tokens);
  /// Gives back the blocks beyond the committed length.
  void shrink();

  /// Begins an empty table with the blocks that the index has of these tokens' beginning, which
  /// become its committed length.
  void adopt_prefix(std::span<const int32_t> tokens);
  /// Shares the full blocks of the committed prefix, which was computed from the first of `tokens`.
  void publish(std::span<const int32_t> tokens);
  int64_t shared_tokens() const { return static_cast<int64_t>(shared_.size()) * kKvBlockTokens; }

 private:
  BlockPool* pool_;
  PrefixIndex* index_;
  std::vector<std::byte*> blocks_;
  std::vector<PrefixIndex::Node*> shared_;  // of blocks_[0..]
  int64_t length_ = 0;
};

}  // namespace orthrus
