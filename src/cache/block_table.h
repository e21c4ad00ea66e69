#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_pool.h"

namespace orthrus {

/// The KV cache of one sequence: its blocks in order and how many tokens are committed. Both views
/// read it; only the AR view writes. Returns its blocks to the pool when destroyed; move-only.
class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}
  ~BlockTable();
  BlockTable(BlockTable&&) noexcept;
  BlockTable& operator=(BlockTable&&) noexcept;

  int64_t length() const { return length_; }  ///< committed tokens
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kKvBlockTokens; }
  std::span<std::byte* const> blocks() const { return blocks_; }
  size_t bytes() const { return blocks_.size() * pool_->layout().block_bytes(); }

  /// Makes room for `tokens` tokens in all. Error(kInput) where the pool has no more blocks.
  void reserve(int64_t tokens);
  /// Sets the committed length: forward after a pass, or back (the rest is simply overwritten
  /// later; whole blocks beyond it stay with the sequence).
  void set_length(int64_t tokens);
  /// Gives back the blocks beyond the committed length.
  void shrink();

 private:
  BlockPool* pool_;
  std::vector<std::byte*> blocks_;
  int64_t length_ = 0;
};

}  // namespace orthrus
