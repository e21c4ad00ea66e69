#include "cache/block_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace orthrus {
namespace {

PrefixIndex::BlockTokens tokens_of_block(std::span<const int32_t> tokens, size_t block) {
  return tokens.subspan(block * kKvBlockTokens).first<kKvBlockTokens>();
}

}  // namespace

BlockTable::~BlockTable() {
  length_ = 0;
  shrink();
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      index_(other.index_),
      blocks_(std::exchange(other.blocks_, {})),
      shared_(std::exchange(other.shared_, {})),
      length_(std::exchange(other.length_, 0)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(index_, other.index_);
  std::swap(blocks_, other.blocks_);
  std::swap(shared_, other.shared_);
  std::swap(length_, other.length_);
  return *this;
}

int64_t BlockTable::blocks_missing(int64_t tokens) const {
  return std::max<int64_t>(0, blocks_for(tokens) - static_cast<int64_t>(blocks_.size()));
}

void BlockTable::reserve(int64_t tokens) {
  const int64_t missing = blocks_missing(tokens);
  if (missing == 0) return;
  if (!pool_->can_reserve(missing)) {
    fail("the KV cache is full: {} more blocks of {} tokens are needed, {} of {} are free", missing,
         kKvBlockTokens, pool_->max_blocks() - pool_->used_blocks(), pool_->max_blocks());
  }
  // Room first: a failure later must not lose a block. Doubled, so that growth is rare.
  const size_t needed = blocks_.size() + static_cast<size_t>(missing);
  if (needed > blocks_.capacity()) blocks_.reserve(std::max(needed, 2 * blocks_.capacity()));
  for (int64_t i = 0; i < missing; ++i) blocks_.push_back(pool_->reserve());
}

void BlockTable::set_length(int64_t tokens) {
  ORTHRUS_CHECK(tokens >= shared_tokens() && tokens <= capacity());
  length_ = tokens;
}

void BlockTable::shrink() {
  const size_t keep = static_cast<size_t>(blocks_for(length_));
  while (blocks_.size() > keep) {
    if (shared_.size() == blocks_.size()) {
      index_->release(*shared_.back());
      shared_.pop_back();
    } else {
      pool_->release(blocks_.back());
    }
    blocks_.pop_back();
  }
}

void BlockTable::adopt_prefix(std::span<const int32_t> tokens) {
  ORTHRUS_CHECK(blocks_.empty() && index_ != nullptr);
  PrefixIndex::Node* last = nullptr;
  for (size_t i = 0; (i + 1) * kKvBlockTokens <= tokens.size(); ++i) {
    PrefixIndex::Node* node = index_->find(last, tokens_of_block(tokens, i));
    if (node == nullptr) break;
    shared_.reserve(i + 1);
    blocks_.push_back(node->block);
    shared_.push_back(node);
    index_->use(*node);
    last = node;
  }
  length_ = shared_tokens();
}

void BlockTable::publish(std::span<const int32_t> tokens) {
  ORTHRUS_CHECK(index_ != nullptr && static_cast<int64_t>(tokens.size()) >= length_);
  while (shared_tokens() + kKvBlockTokens <= length_) {
    const size_t i = shared_.size();
    shared_.reserve(i + 1);
    PrefixIndex::Node* parent = i == 0 ? nullptr : shared_.back();
    shared_.push_back(index_->insert(parent, tokens_of_block(tokens, i), blocks_[i]));
    blocks_[i] = shared_.back()->block;
  }
}

}  // namespace orthrus
