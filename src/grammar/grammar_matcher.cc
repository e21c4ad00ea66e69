#include "grammar/grammar_matcher.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/token_walk.h"

namespace orthrus {
namespace {

/// Masks kept: the drafts of a cycle ask for the same ones as their verification.
constexpr size_t kMasks = 64;
/// Memory of the sets from which on unused ones are forgotten.
constexpr size_t kSetBytes = size_t{16} << 20;

void set_bit(std::vector<uint64_t>& words, int32_t token) {
  words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const TokenTrie> tokens,
                               std::span<const int32_t> end_tokens)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      local_masks_(grammar_->local_masks(tokens_)),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      work_(std::make_unique<grammar::Work>(kMaxWork)),
      sets_(std::make_unique<grammar::StackSets>(*grammar_, *work_)),
      path_(tokens_->max_depth() + 1),
      memory_limit_(kSetBytes) {
  for (const int32_t token : end_tokens_) {
    if (token < 0 || token >= tokens_->vocab_size()) {
      fail_usage("grammar: end token {} is not in the vocabulary of {}", token,
                 tokens_->vocab_size());
    }
  }
  history_.push_back(sets_->enter(grammar_->start(), grammar::StackSets::kEmptyStack));
}

bool GrammarMatcher::is_end(int32_t token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

bool GrammarMatcher::may_end() const {
  const Id state = history_.back();
  return state == grammar::StackSets::kNone || sets_->may_end(state);
}

GrammarMatcher::Id GrammarMatcher::after(Id state, int32_t token) {
  const std::string_view bytes = tokens_->bytes(token);
  if (bytes.empty()) return grammar::StackSets::kNone;
  for (size_t i = 0; i < bytes.size() && state != grammar::StackSets::kNone; ++i) {
    state = sets_->next(state, static_cast<uint8_t>(bytes[i]));
  }
  return state;
}

template <typename Operation>
auto GrammarMatcher::within_limits(Operation operation) {
  longest_ = std::max(longest_, history_.size());
  work_->set_limit(std::min(work_->spent() + kMaxWork, kFirstWork + kTokenWork * longest_));
  if (sets_->bytes() >= memory_limit_) forget_unused();
  try {
    return operation();
  } catch (const Error&) {
    if (work_->exceeded()) throw;
    forget_unused();  // too many sets: perhaps of tokens that were taken back
    return operation();
  }
}

bool GrammarMatcher::accept(int32_t token) {
  if (token < 0 || token >= tokens_->vocab_size()) return false;
  if (is_end(token)) {
    if (!may_end()) return false;
    history_.push_back(grammar::StackSets::kNone);
    return true;
  }
  const Id state = within_limits([&] { return after(history_.back(), token); });
  if (state == grammar::StackSets::kNone) return false;
  history_.push_back(state);
  return true;
}

void GrammarMatcher::rollback(int64_t tokens) {
  ORTHRUS_CHECK(tokens >= 0 && tokens <= size());
  history_.resize(history_.size() - static_cast<size_t>(tokens));
}

std::span<const uint64_t> GrammarMatcher::mask() {
  return within_limits([&]() -> std::span<const uint64_t> {
    const Id state = history_.back();
    const auto known = std::find_if(masks_.begin(), masks_.end(),
                                    [&](const CachedMask& mask) { return mask.state == state; });
    if (known != masks_.end()) {
      masks_.splice(masks_.begin(), masks_, known);
      return masks_.front().words;
    }
    CachedMask made{state, std::vector<uint64_t>((tokens_->vocab_size() + 63) / 64)};
    make_mask(state, made.words);
    if (masks_.size() == kMasks) masks_.pop_back();
    masks_.push_front(std::move(made));
    return masks_.front().words;
  });
}

void GrammarMatcher::make_mask(Id state, std::vector<uint64_t>& words) {
  // A copy: the sets grow below.
  const auto span = sets_->entries(state);
  const std::vector<grammar::StackSets::Entry> entries(span.begin(), span.end());
  for (const auto& entry : entries) {
    if (entry.position != grammar::StackSets::kBottom) add_part(entry, words);
  }
  for (const int32_t token : end_tokens_) {
    const uint64_t bit = uint64_t{1} << (token % 64);
    uint64_t& word = words[static_cast<size_t>(token) / 64];
    word = may_end() ? word | bit : word & ~bit;
  }
}

void GrammarMatcher::add_part(const grammar::StackSets::Entry& entry,
                              std::vector<uint64_t>& words) {
  const uint64_t before = work_->spent();
  const auto local = local_masks_->get(entry.position, *work_);
  if (groups_.insert(local_masks_->group(entry.position)).second && work_->spent() == before) {
    sets_->spend(local->work);  // made for another answer, which must not decide about this one
  }
  sets_->spend((local->words.size() + local->few.size()) / 16 + local->leave.size());
  if (sets_->depth(entry.below) + local->depth_reached > Grammar::kMaxDepth) {
    add_tokens(0, tokens_->size(), 0, sets_->single(entry.position, entry.below), words);
    return;
  }
  for (size_t i = 0; i < local->words.size(); ++i) words[i] |= local->words[i];
  for (const int32_t token : local->few) set_bit(words, token);
  if (local->leave.empty()) return;
  const Id returned = sets_->enter(entry.below);
  const auto next = sets_->entries(returned);  // kBottom is the last
  if (next.empty() || next.front().position == grammar::StackSets::kBottom) return;
  for (const uint32_t index : local->leave) {
    const TokenTrie::Node& node = tokens_->node(index);
    add_tokens(index + 1, node.end, node.depth, returned, words);
  }
}

void GrammarMatcher::add_tokens(uint32_t begin, uint32_t end, size_t depth, Id set,
                                std::vector<uint64_t>& words) {
  grammar::walk_tokens(*tokens_, *sets_, begin, end, depth, set, path_, [&](uint32_t index, Id) {
    for (const int32_t token : tokens_->tokens(index)) set_bit(words, token);
  });
}

void GrammarMatcher::forget_unused() {
  auto kept = std::make_unique<grammar::StackSets>(*grammar_, *work_);
  sets_->move_to(*kept, history_);
  sets_ = std::move(kept);
  masks_.clear();
  memory_limit_ = std::max(kSetBytes, 2 * sets_->bytes());
}

}  // namespace orthrus
