#include "cache/prefix_index.h"

#include <algorithm>
#include <random>

#include "base/error.h"

namespace orthrus {
namespace {

/// The finaliser of SplitMix64 (Steele et al. 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

size_t PrefixIndex::Hash::operator()(const Key& key) const {
  uint64_t hash = mix(seed ^ reinterpret_cast<uintptr_t>(key.parent));
  for (const int32_t token : key.tokens) hash = mix(hash ^ static_cast<uint32_t>(token));
  return static_cast<size_t>(hash);
}

bool PrefixIndex::Equal::operator()(const Key& a, const std::unique_ptr<Node>& b) const {
  return a.parent == b->parent && std::equal(a.tokens.begin(), a.tokens.end(), b->tokens.begin());
}

PrefixIndex::PrefixIndex(BlockPool& pool)
    : pool_(pool), nodes_(/*bucket_count=*/0, Hash{random_seed()}) {}

PrefixIndex::~PrefixIndex() {
  for (const auto& node : nodes_) pool_.release(node->block);
}

PrefixIndex::Node* PrefixIndex::find(const Node* parent, BlockTokens tokens) const {
  const auto found = nodes_.find(Key{parent, tokens});
  return found == nodes_.end() ? nullptr : found->get();
}

PrefixIndex::Node* PrefixIndex::insert(Node* parent, BlockTokens tokens, std::byte* block) {
  ORTHRUS_CHECK(parent == nullptr || parent->users > 0);
  if (Node* known = find(parent, tokens)) {
    use(*known);
    pool_.release(block);
    return known;
  }
  auto node = std::make_unique<Node>();
  node->parent = parent;
  std::copy(tokens.begin(), tokens.end(), node->tokens.begin());
  node->block = block;
  node->users = 1;
  return nodes_.insert(std::move(node)).first->get();
}

void PrefixIndex::use(Node& node) {
  if (node.users++ == 0) idle_.erase(node.idle);
}

void PrefixIndex::release(Node& node) {
  ORTHRUS_CHECK(node.users > 0);
  if (--node.users == 0) node.idle = idle_.insert(idle_.end(), &node);
}

bool PrefixIndex::make_room(int64_t blocks) {
  while (!pool_.can_reserve(blocks) && !idle_.empty()) drop(*idle_.front());
  return pool_.can_reserve(blocks);
}

void PrefixIndex::drop(Node& node) {
  idle_.erase(node.idle);
  pool_.release(node.block);
  nodes_.erase(nodes_.find(Key{node.parent, node.tokens}));
}

}  // namespace orthrus
