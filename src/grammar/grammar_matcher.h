#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/local_masks.h"
#include "grammar/stack_sets.h"
#include "grammar/token_trie.h"

namespace orthrus {

/// Reads the tokens of one answer and says which may follow. A token may cross any border within
/// the grammar and hold part of a character. What masks have in common is shared with the other
/// matchers of the same grammar and vocabulary; each matcher is used by one thread at a time.
///
/// Error(kUsage), by the constructor, mask() and accept(), where a grammar is so ambiguous that the
/// limit on the readings of the text so far or on the work for them is exceeded; nothing changed
/// then, and tokens can be taken back.
class GrammarMatcher {
 public:
  /// Operations (of 5 to 10 ns: the first mask within a string takes 340,000 for 151,669 tokens)
  /// that a mask or a token may take, an answer at first, and for each token of its longest text.
  /// What is known from other answers counts as if it were not.
  static constexpr uint64_t kMaxWork = 1'250'000;
  static constexpr uint64_t kFirstWork = 10'000'000;
  static constexpr uint64_t kTokenWork = 400'000;

  /// `end_tokens` end the answer, whatever their bytes are. Error(kUsage) for one outside of the
  /// vocabulary.
  GrammarMatcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> tokens,
                 std::span<const int32_t> end_tokens);

  /// A bit for each token id, set where it may follow: bit id % 64 of word id / 64. The bits of end
  /// tokens are set where the text may end; behind an end token only they are. No bit is set only
  /// where the vocabulary cannot spell what the grammar asks for, or the text must end and there
  /// are no end tokens. Valid until the matcher's next call.
  std::span<const uint64_t> mask();
  /// Whether the token may follow (as mask() says); if so it is appended, else nothing changes.
  bool accept(int32_t token);
  /// Takes back the last `tokens` accepted ones, at most size().
  void rollback(int64_t tokens);
  /// Number of accepted tokens, end tokens included.
  int64_t size() const { return static_cast<int64_t>(history_.size()) - 1; }
  /// Whether the text so far is a whole one of the language.
  bool may_end() const;
  /// Operations so far, those of tokens that were taken back included.
  uint64_t work() const { return work_->spent(); }

 private:
  using Id = grammar::StackSets::Id;
  struct CachedMask {
    Id state = 0;
    std::vector<uint64_t> words;
  };

  bool is_end(int32_t token) const;
  /// The state after the bytes of a token; kNone where they may not follow.
  Id after(Id state, int32_t token);
  void make_mask(Id state, std::vector<uint64_t>& words);
  void add_part(const grammar::StackSets::Entry& entry, std::vector<uint64_t>& words);
  void add_tokens(uint32_t begin, uint32_t end, size_t depth, Id set, std::vector<uint64_t>& words);
  /// Does what makes sets within the limits of work and memory.
  template <typename Operation>
  auto within_limits(Operation operation);
  /// Forgets the sets that no accepted token stands for. Numbers of sets change.
  void forget_unused();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenTrie> tokens_;
  std::shared_ptr<grammar::LocalMasks> local_masks_;
  std::vector<int32_t> end_tokens_;
  std::unique_ptr<grammar::Work> work_;
  std::unique_ptr<grammar::StackSets> sets_;
  std::vector<Id> history_;  // states: the first, and after each token; kNone behind an end token
  std::list<CachedMask> masks_;  // the one used last is first
  std::vector<Id> path_;
  std::unordered_set<uint32_t> groups_;  // whose local masks the work has been counted of
  size_t longest_ = 0;                   // history_ has been
  size_t memory_limit_;
};

}  // namespace orthrus
