#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/work.h"

namespace orthrus::grammar {

/// Sets of stacks of a pushdown automaton, each known by a number. A set is a list of (state on
/// top, set of the stacks below it), each state once, so that equal sets have equal numbers and
/// stacks share what they have in common: a text that can be read in exponentially many ways
/// still has a small set. Sets are built up by the text and never change. Not thread-safe.
///
/// Whatever makes sets counts its work; Error(kUsage) beyond its limit or that of the sets' number.
class StackSets {
 public:
  using Id = uint32_t;
  struct Entry {
    uint32_t position = 0;  ///< a state of the grammar, or kBottom
    Id below = 0;
    bool operator==(const Entry&) const = default;
  };
  static constexpr uint32_t kBottom = ~0u;  ///< nothing is left: where the text may end
  static constexpr Id kNone = 0;            ///< no stack at all
  static constexpr Id kEmptyStack = 1;      ///< only the stack without anything on it

  /// Both must outlive this.
  StackSets(const Grammar& grammar, Work& work);

  /// Counts work of the caller's.
  void spend(uint64_t operations) {
    if (!work_.spend(operations)) fail_too_expensive();
  }

  Id single(uint32_t position, Id below);
  /// What `position` above `below` comes to before the next byte: calls entered, finished rules
  /// left; only states that read a byte remain, and kBottom.
  Id enter(uint32_t position, Id below);
  /// The same for all stacks of `returns`, to which a rule that ended goes back.
  Id enter(Id returns);
  /// After one more byte; `set` is a result of enter() or next(). kNone where no stack reads it.
  Id next(Id set, uint8_t byte) {
    const uint32_t row = rows_of_[set];
    const uint8_t byte_class = grammar_.byte_class(byte);
    if (row != kUnknown) {
      const Id known = rows_[row * grammar_.classes() + byte_class];
      if (known != kUnknown) return known;
    }
    return find_next(set, byte_class);
  }

  std::span<const Entry> entries(Id set) const {
    return std::span(entries_).subspan(begins_[set], begins_[set + 1] - begins_[set]);
  }
  bool may_end(Id set) const {
    return begins_[set + 1] > begins_[set] && entries_[begins_[set + 1] - 1].position == kBottom;
  }
  /// Most calls on a stack of the set.
  int32_t depth(Id set) const { return depths_[set]; }
  /// Greatest depth that was asked for so far, also where Grammar::kMaxDepth refused it.
  int32_t depth_reached() const { return depth_reached_; }
  /// Memory in use, roughly.
  size_t bytes() const;
  /// Brings the sets of `roots` and those below them over into `other`, which has none yet, and
  /// renumbers `roots`.
  void move_to(StackSets& other, std::span<Id> roots) const;

 private:
  static constexpr Id kUnknown = ~0u;

  [[noreturn]] static void fail_too_expensive();

  /// The set of what was found by todo_; clears both.
  Id entered();
  /// Whether todo_'s work at `entry` is new.
  bool first_time(const Entry& entry);
  /// Whether so many calls more on top of `below` are allowed.
  bool within_depth(Id below, int32_t needed);
  Id intern(std::span<const Entry> sorted);
  /// Sorts, and unites what stands below equal positions.
  Id unite(std::vector<Entry>& entries);
  Id unite(Id a, Id b);
  Id find_next(Id set, uint8_t byte_class);
  void grow_table();

  const Grammar& grammar_;
  Work& work_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> begins_;   // by set, and one behind the last
  std::vector<int32_t> depths_;    // by set
  std::vector<Id> entered_;        // by set: enter(set)
  std::vector<uint32_t> rows_of_;  // by set: its row of next()
  std::vector<Id> rows_;           // [rows, classes]
  std::vector<Id> table_;          // open addressing; kUnknown: free
  std::unordered_map<uint64_t, Id> united_;
  std::vector<Entry> todo_, found_, seen_;
  std::unordered_set<uint64_t> seen_many_;
  int32_t depth_reached_ = 0;
};

}  // namespace orthrus::grammar
