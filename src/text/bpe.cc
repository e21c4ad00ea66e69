#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"

namespace orthrus {
namespace {

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

uint64_t Bpe::hash(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio: spreads neighbouring ids
  return pair ^ pair >> 29;
}

void Bpe::reserve(size_t merges) {
  ORTHRUS_CHECK(results_.empty() && merges < UINT32_MAX);
  slots_.assign(std::bit_ceil(2 * merges + 2), Slot{});
  results_.reserve(merges);
}

Bpe::Slot& Bpe::slot_for(uint64_t pair) {
  size_t mask = slots_.size() - 1;
  size_t i = hash(pair) & mask;
  while (slots_[i].pair != kEmpty && slots_[i].pair != pair) i = (i + 1) & mask;
  return slots_[i];
}

void Bpe::add_merge(int32_t left, int32_t right, int32_t result, bool tied) {
  ORTHRUS_CHECK(2 * merges_ < slots_.size() && (!tied || !results_.empty()));
  ++merges_;
  if (!tied) results_.push_back(result);
  slot_for(pair_of(left, right)) = {pair_of(left, right),
                                    static_cast<uint32_t>(results_.size() - 1), result};
}

const Bpe::Slot* Bpe::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  uint64_t pair = pair_of(left, right);
  size_t mask = slots_.size() - 1;
  for (size_t i = hash(pair) & mask; slots_[i].pair != kEmpty; i = (i + 1) & mask) {
    if (slots_[i].pair == pair) return &slots_[i];
  }
  return nullptr;
}

void Bpe::start(std::string_view piece, Scratch& scratch) const {
  scratch.id.clear();
  bool after_unknown = false;
  for (char byte : piece) {
    int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    bool unknown = id < 0;
    if (unknown && (unknown_ < 0 || (after_unknown && fuse_unknown_))) continue;
    scratch.id.push_back(unknown ? unknown_ : id);
    after_unknown = unknown;
  }
}

void Bpe::link(Scratch& scratch) {
  auto size = static_cast<int32_t>(scratch.id.size());
  scratch.previous.resize(scratch.id.size());
  scratch.next.resize(scratch.id.size());
  for (int32_t i = 0; i < size; ++i) {
    scratch.previous[static_cast<size_t>(i)] = i - 1;
    scratch.next[static_cast<size_t>(i)] = i + 1 < size ? i + 1 : -1;
  }
}

/// Puts the merge of the symbol at `left` with the next one, if there is one, at the heap's end.
void Bpe::offer(Scratch& scratch, int32_t left) const {
  int32_t right = scratch.next[static_cast<size_t>(left)];
  if (right < 0) return;
  const Slot* slot =
      find(scratch.id[static_cast<size_t>(left)], scratch.id[static_cast<size_t>(right)]);
  if (slot) scratch.heap.push_back(uint64_t{slot->rank} << 32 | static_cast<uint32_t>(left));
}

void Bpe::merge_all(Scratch& scratch) const {
  std::vector<uint64_t>& heap = scratch.heap;
  auto push = [&](int32_t left) {
    size_t before = heap.size();
    offer(scratch, left);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint64_t candidate = heap.back();
    heap.pop_back();
    auto left = static_cast<size_t>(candidate & UINT32_MAX);
    int32_t expected = results_[candidate >> 32];
    int32_t right = scratch.next[left];
    if (scratch.id[left] < 0 || right < 0) continue;
    // The candidate may be stale: since it was found, either side may have grown.
    const Slot* slot = find(scratch.id[left], scratch.id[static_cast<size_t>(right)]);
    if (!slot || results_[slot->rank] != expected) continue;
    int32_t behind = scratch.next[static_cast<size_t>(right)];
    scratch.id[left] = slot->result;
    scratch.id[static_cast<size_t>(right)] = -1;
    scratch.next[left] = behind;
    if (behind >= 0) scratch.previous[static_cast<size_t>(behind)] = static_cast<int32_t>(left);
    push(static_cast<int32_t>(left));
    if (scratch.previous[left] >= 0) push(scratch.previous[left]);
  }
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& out) const {
  ORTHRUS_CHECK(piece.size() <= INT32_MAX);
  start(piece, scratch);
  merge(scratch, out);
}

void Bpe::merge(Scratch& scratch, std::vector<int32_t>& out) const {
  ORTHRUS_CHECK(scratch.id.size() <= INT32_MAX);
  if (scratch.id.empty()) return;
  link(scratch);
  scratch.heap.clear();
  for (int32_t i = 0; scratch.next[static_cast<size_t>(i)] >= 0; ++i) offer(scratch, i);
  merge_all(scratch);
  for (int32_t i = 0; i >= 0; i = scratch.next[static_cast<size_t>(i)]) {
    out.push_back(scratch.id[static_cast<size_t>(i)]);
  }
}

}  // namespace orthrus
