#include "grammar/stack_sets.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus::grammar {
namespace {

/// Most entries of one set, and of all; JSON has a handful and a few thousand.
constexpr size_t kMaxWays = 1u << 12;
constexpr size_t kMaxEntries = 1u << 20;

/// Measured, in nodes of the trie that are read: what is looked up in a table for each stack and
/// for each set. The rest of the work is about one for each entry that is read or written.
constexpr uint64_t kStackWork = 2;
constexpr uint64_t kSetWork = 3;

uint64_t pair_key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

uint64_t hash_of(std::span<const StackSets::Entry> entries) {
  uint64_t hash = entries.size();
  for (const auto& entry : entries) {
    hash = (hash ^ pair_key(entry.position, entry.below)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

[[noreturn]] void fail_too_many() {
  fail_usage("grammar: too ambiguous: the answer so far can be read in too many ways");
}

}  // namespace

void StackSets::fail_too_expensive() {
  fail_usage("grammar: too expensive: it takes too much work to find what may follow the answer");
}

StackSets::StackSets(const Grammar& grammar, Work& work)
    : grammar_(grammar), work_(work), begins_{0}, table_(64, kUnknown) {
  intern({});
  const Entry bottom{kBottom, kNone};
  intern({&bottom, 1});
}

void StackSets::grow_table() {
  table_.assign(table_.size() * 2, kUnknown);
  for (Id set = 0; set + 1 < begins_.size(); ++set) {
    size_t slot = hash_of(entries(set)) & (table_.size() - 1);
    while (table_[slot] != kUnknown) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = set;
  }
}

StackSets::Id StackSets::intern(std::span<const Entry> sorted) {
  spend(kSetWork + sorted.size() / 4);
  size_t slot = hash_of(sorted) & (table_.size() - 1);
  for (; table_[slot] != kUnknown; slot = (slot + 1) & (table_.size() - 1)) {
    const auto known = entries(table_[slot]);
    if (std::equal(known.begin(), known.end(), sorted.begin(), sorted.end())) return table_[slot];
  }
  if (sorted.size() > kMaxWays || entries_.size() + sorted.size() > kMaxEntries) fail_too_many();
  const Id set = static_cast<Id>(begins_.size() - 1);
  int32_t depth = 0;
  for (const Entry& entry : sorted) {
    if (entry.position != kBottom) depth = std::max(depth, depths_[entry.below] + 1);
  }
  entries_.insert(entries_.end(), sorted.begin(), sorted.end());
  begins_.push_back(static_cast<uint32_t>(entries_.size()));
  depths_.push_back(depth);
  entered_.push_back(kUnknown);
  rows_of_.push_back(kUnknown);
  table_[slot] = set;
  if (begins_.size() * 2 > table_.size()) grow_table();
  return set;
}

StackSets::Id StackSets::single(uint32_t position, Id below) {
  const Entry entry{position, below};
  return intern({&entry, 1});
}

StackSets::Id StackSets::unite(std::vector<Entry>& list) {
  spend(list.size());
  std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
    return pair_key(a.position, a.below) < pair_key(b.position, b.below);
  });
  size_t kept = 0;
  for (const Entry& entry : list) {
    if (kept > 0 && list[kept - 1].position == entry.position) {
      list[kept - 1].below = unite(list[kept - 1].below, entry.below);
    } else {
      list[kept++] = entry;
    }
  }
  list.resize(kept);
  return intern(list);
}

StackSets::Id StackSets::unite(Id a, Id b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  spend(2 * kSetWork);
  const uint64_t key = pair_key(std::min(a, b), std::max(a, b));
  if (const auto known = united_.find(key); known != united_.end()) return known->second;
  // No deeper than stacks are: below a set stand only less deep ones.
  std::vector<Entry> list(entries(a).begin(), entries(a).end());
  list.insert(list.end(), entries(b).begin(), entries(b).end());
  const Id result = unite(list);
  if (united_.size() >= kMaxEntries) fail_too_many();
  united_.emplace(key, result);
  return result;
}

bool StackSets::first_time(const Entry& entry) {
  constexpr size_t kFew = 16;  // up to which a look at all of them is fastest
  if (seen_.size() < kFew) {
    if (std::find(seen_.begin(), seen_.end(), entry) != seen_.end()) return false;
    seen_.push_back(entry);
    return true;
  }
  if (seen_many_.empty()) {
    for (const Entry& seen : seen_) seen_many_.insert(pair_key(seen.position, seen.below));
  }
  if (seen_many_.size() > 4 * kMaxWays) fail_too_many();
  spend(2 * kStackWork);
  return seen_many_.insert(pair_key(entry.position, entry.below)).second;
}

bool StackSets::within_depth(Id below, int32_t needed) {
  const int32_t depth = depths_[below] + needed;
  depth_reached_ = std::max(depth_reached_, depth);
  return depth <= Grammar::kMaxDepth;
}

StackSets::Id StackSets::entered() {
  found_.clear();
  seen_.clear();
  seen_many_.clear();
  while (!todo_.empty()) {
    const Entry entry = todo_.back();
    todo_.pop_back();
    spend(kStackWork);
    if (entry.position == kBottom) {
      found_.push_back(entry);
      continue;
    }
    const Grammar::State state = grammar_.state(entry.position);
    // Whatever else a stack that is kept could do, it can be completed within the limit.
    if (!within_depth(entry.below, state.depth_needed) || !first_time(entry)) continue;
    if (!state.edges.empty()) found_.push_back(entry);
    if (state.final) {
      const auto below = entries(entry.below);
      todo_.insert(todo_.end(), below.begin(), below.end());
    }
    for (const Grammar::Call& call : state.calls) {
      const Grammar::State target = grammar_.state(call.target);
      if (!within_depth(entry.below, target.depth_needed)) continue;
      todo_.push_back(
          {call.start, target.only_final() ? entry.below : single(call.target, entry.below)});
    }
  }
  return unite(found_);
}

StackSets::Id StackSets::enter(uint32_t position, Id below) {
  todo_.assign(1, {position, below});
  return entered();
}

StackSets::Id StackSets::enter(Id returns) {
  if (entered_[returns] == kUnknown) {
    todo_.assign(entries(returns).begin(), entries(returns).end());
    const Id result = entered();
    entered_[returns] = result;
  }
  return entered_[returns];
}

StackSets::Id StackSets::find_next(Id set, uint8_t byte_class) {
  todo_.clear();
  for (const Entry& entry : entries(set)) {
    if (entry.position == kBottom) continue;
    const auto edges = grammar_.state(entry.position).edges;
    spend(1 + edges.size() / 4);
    for (const Grammar::Edge& edge : edges) {
      if (edge.first_class <= byte_class && byte_class <= edge.last_class) {
        todo_.push_back({edge.target, entry.below});
      }
    }
  }
  const Id result = todo_.empty() ? kNone : entered();
  if (rows_of_[set] == kUnknown) {
    rows_of_[set] = static_cast<uint32_t>(rows_.size() / grammar_.classes());
    spend(grammar_.classes() / 8);
    rows_.resize(rows_.size() + grammar_.classes(), kUnknown);
  }
  rows_[rows_of_[set] * grammar_.classes() + byte_class] = result;
  return result;
}

size_t StackSets::bytes() const {
  return entries_.size() * sizeof(Entry) + begins_.size() * 16 + rows_.size() * sizeof(Id) +
         table_.size() * sizeof(Id) + united_.size() * 40;
}

void StackSets::move_to(StackSets& other, std::span<Id> roots) const {
  constexpr Id kWanted = kUnknown - 1;
  std::vector<Id> moved(begins_.size() - 1, kUnknown);
  for (const Id root : roots) moved[root] = kWanted;
  // A set is always younger than those below it.
  for (size_t set = moved.size(); set-- > 0;) {
    if (moved[set] != kWanted) continue;
    for (const Entry& entry : entries(static_cast<Id>(set))) moved[entry.below] = kWanted;
  }
  std::vector<Entry> list;
  for (size_t set = 0; set < moved.size(); ++set) {
    if (moved[set] != kWanted) continue;
    list.assign(entries(static_cast<Id>(set)).begin(), entries(static_cast<Id>(set)).end());
    for (Entry& entry : list) entry.below = moved[entry.below];
    moved[set] = other.intern(list);
  }
  for (Id& root : roots) root = moved[root];
}

}  // namespace orthrus::grammar
