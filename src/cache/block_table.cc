#include "cache/block_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace orthrus {

BlockTable::~BlockTable() {
  length_ = 0;
  shrink();
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      blocks_(std::exchange(other.blocks_, {})),
      length_(std::exchange(other.length_, 0)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(blocks_, other.blocks_);
  std::swap(length_, other.length_);
  return *this;
}

void BlockTable::reserve(int64_t tokens) {
  const int64_t needed = blocks_for(tokens);
  const int64_t missing = needed - static_cast<int64_t>(blocks_.size());
  if (missing <= 0) return;
  if (!pool_->can_reserve(missing)) {
    fail("the KV cache is full: {} more blocks of {} tokens are needed, {} of {} are free", missing,
         kKvBlockTokens, pool_->max_blocks() - pool_->used_blocks(), pool_->max_blocks());
  }
  // Room first: a failure later must not lose a block. Doubled, so that growth is rare.
  if (static_cast<size_t>(needed) > blocks_.capacity()) {
    blocks_.reserve(std::max(static_cast<size_t>(needed), 2 * blocks_.capacity()));
  }
  for (int64_t i = 0; i < missing; ++i) blocks_.push_back(pool_->reserve());
}

void BlockTable::set_length(int64_t tokens) {
  ORTHRUS_CHECK(tokens >= 0 && tokens <= capacity());
  length_ = tokens;
}

void BlockTable::shrink() {
  const size_t keep = static_cast<size_t>(blocks_for(length_));
  while (blocks_.size() > keep) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace orthrus
