#include "cache/block_pool.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus {
namespace {

// A slab is taken at once: few system calls, huge pages where the blocks are large enough.
constexpr int64_t kSlabBlocks = 16;
constexpr size_t kSlabBytes = size_t{8} << 20;

}  // namespace

BlockPool::BlockPool(const KvLayout& layout, int64_t max_blocks)
    : layout_(layout), max_blocks_(max_blocks) {
  check_kv_layout(layout);
  ORTHRUS_CHECK(max_blocks >= 0);
  const int64_t fit = static_cast<int64_t>(kSlabBytes / layout.block_bytes());
  slab_blocks_ = std::clamp<int64_t>(fit, 1, kSlabBlocks);
}

std::byte* BlockPool::reserve() {
  if (!can_reserve(1)) {
    fail("the KV cache is full: all {} blocks of {} tokens are in use", max_blocks_,
         kKvBlockTokens);
  }
  if (free_.empty()) add_slab();
  std::byte* block = free_.back();
  free_.pop_back();
  ++used_;
  return block;
}

void BlockPool::release(std::byte* block) {
  ORTHRUS_CHECK(block != nullptr && used_ > 0);
  free_.push_back(block);
  --used_;
}

size_t BlockPool::allocated_bytes() const {
  size_t bytes = 0;
  for (const AlignedBuffer& slab : slabs_) bytes += slab.size();
  return bytes;
}

void BlockPool::add_slab() {
  // Nothing is free, so the blocks in use are all there are.
  const int64_t blocks = std::min(slab_blocks_, max_blocks_ - used_);
  // Room first, so that release() never allocates and a failure leaves the pool as it was.
  free_.reserve(static_cast<size_t>(used_ + blocks));
  slabs_.reserve(slabs_.size() + 1);
  AlignedBuffer slab(static_cast<size_t>(blocks) * layout_.block_bytes());
  for (int64_t i = blocks; i-- > 0;) {
    free_.push_back(slab.data() + static_cast<size_t>(i) * layout_.block_bytes());
  }
  slabs_.push_back(std::move(slab));
}

}  // namespace orthrus
