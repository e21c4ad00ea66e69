#include "grammar/local_masks.h"

#include <algorithm>

#include "grammar/state_groups.h"
#include "grammar/token_walk.h"

namespace orthrus::grammar {
namespace {

/// Beyond it all are forgotten: they come back at a millisecond or two each.
constexpr size_t kMaxBytes = size_t{32} << 20;

}  // namespace

LocalMasks::LocalMasks(const Grammar& grammar, const TokenTrie& tokens)
    : grammar_(grammar), tokens_(tokens), groups_(state_groups(grammar, tokens.max_depth())) {}

std::shared_ptr<const LocalMasks::Mask> LocalMasks::get(uint32_t state, Work& work) {
  const uint32_t group = groups_[state];
  {
    std::lock_guard lock(mutex_);
    if (const auto known = masks_.find(group); known != masks_.end()) return known->second;
  }
  // Outside of the lock: two threads may compute the same mask, but none waits for another.
  auto mask = make(state, work);
  std::lock_guard lock(mutex_);
  if (bytes_ + mask->bytes() > kMaxBytes) {
    masks_.clear();
    bytes_ = 0;
  }
  if (masks_.emplace(group, mask).second) bytes_ += mask->bytes();
  return mask;
}

std::shared_ptr<const LocalMasks::Mask> LocalMasks::make(uint32_t state, Work& work) const {
  auto mask = std::make_shared<Mask>();
  const uint64_t before = work.spent();
  StackSets sets(grammar_, work);
  std::vector<StackSets::Id> path(tokens_.max_depth() + 1);
  std::vector<int32_t> found;
  walk_tokens(tokens_, sets, 0, tokens_.size(), 0, sets.single(state, StackSets::kEmptyStack), path,
              [&](uint32_t index, StackSets::Id set) {
                const auto ended = tokens_.tokens(index);
                found.insert(found.end(), ended.begin(), ended.end());
                if (sets.may_end(set) && tokens_.node(index).end > index + 1) {
                  mask->leave.push_back(index);
                }
              });
  mask->depth_reached = sets.depth_reached();
  mask->work = work.spent() - before;
  const size_t words = (static_cast<size_t>(tokens_.vocab_size()) + 63) / 64;
  if (found.size() < words) {
    mask->few.assign(found.begin(), found.end());
  } else {
    mask->words.resize(words);
    for (const int32_t token : found) {
      mask->words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    }
  }
  return mask;
}

}  // namespace orthrus::grammar
