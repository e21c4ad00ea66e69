#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/attention.h"

namespace orthrus {

/// Blocks that hold `tokens` tokens of one sequence.
inline int64_t blocks_for(int64_t tokens) { return (tokens + kKvBlockTokens - 1) / kKvBlockTokens; }

/// Memory for the blocks of all sequences' KV caches, up to a fixed number of blocks. Blocks are
/// taken from the system in slabs as they are first needed and go back to a free list; they are not
/// zeroed (attention never reads past a row's length). Not thread-safe: one owner schedules.
class BlockPool {
 public:
  /// Error(kInput) where check_kv_layout refuses the layout.
  BlockPool(const KvLayout& layout, int64_t max_blocks);

  const KvLayout& layout() const { return layout_; }
  int64_t max_blocks() const { return max_blocks_; }
  int64_t used_blocks() const { return used_; }
  bool can_reserve(int64_t blocks) const { return used_ + blocks <= max_blocks_; }
  /// Error(kInput) where the pool is exhausted: ask can_reserve first.
  std::byte* reserve();
  void release(std::byte* block);
  /// Bytes taken from the system so far.
  size_t allocated_bytes() const;

 private:
  void add_slab();

  KvLayout layout_;
  int64_t max_blocks_;
  int64_t slab_blocks_ = 1;
  int64_t used_ = 0;
  std::vector<AlignedBuffer> slabs_;
  std::vector<std::byte*> free_;
};

}  // namespace orthrus
