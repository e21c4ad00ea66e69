#include "grammar/automaton.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace orthrus::grammar {
namespace {

using Members = std::vector<uint32_t>;

constexpr size_t kMaxEdges = 1u << 21;
/// Operations, of some nanoseconds, that all rules take together: less than a second. No rule's
/// deterministic automaton may take more than half of what is left.
constexpr uint64_t kMaxWork = 120'000'000;
/// Measured: finding a set in the table, and sorting and hashing a member of it.
constexpr uint64_t kSubsetWork = 20;
constexpr uint64_t kMemberWork = 4;

struct MembersHash {
  size_t operator()(const Members& members) const {
    uint64_t hash = members.size();
    for (const uint32_t member : members) hash = (hash ^ member) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
  }
};

/// The subset construction for one rule.
class Subsets {
 public:
  /// States become those behind what `automata` has. `deterministic`: members that read the same
  /// byte go on together.
  Subsets(const Nfa& nfa, Automata& automata, bool deterministic, Work& work)
      : nfa_(nfa),
        automata_(automata),
        deterministic_(deterministic),
        work_(work),
        marks_(nfa.size(), 0) {}

  /// False where it takes more than `max_members`, or more edges or work than there may be; then
  /// the automata have to be cut back.
  bool run(uint32_t start, size_t max_members) {
    subset({start});
    for (size_t done = 0; done < order_.size(); ++done) {
      const Members members = *order_[done];
      members_ += members.size();
      if (members_ > max_members || edges_ > kMaxEdges) return false;
      Automata::State state;
      add_calls(members, state);
      add_edges(members, state);
      state.final = !members.empty() && members.front() == Nfa::kAcceptState;
      automata_.states[first_ + done] = std::move(state);
      if (work_.exceeded()) return false;
    }
    return true;
  }

  size_t edges() const { return edges_; }

 private:
  static constexpr uint32_t kUnknown = ~0u;

  /// subset({target}), which states of one target each ask for again and again.
  uint32_t single(uint32_t target) {
    if (singles_.empty()) singles_.assign(nfa_.size(), kUnknown);
    if (singles_[target] == kUnknown) singles_[target] = subset({target});
    return singles_[target];
  }

  /// The state for what can be reached from `targets` by empty moves; any where that is too much
  /// work, which ends it all.
  uint32_t subset(const Members& targets) {
    if (work_.exceeded()) return 0;
    Members members, todo = targets;
    uint64_t moves = targets.size();
    ++mark_;
    while (!todo.empty()) {
      const uint32_t index = todo.back();
      todo.pop_back();
      if (marks_[index] == mark_) continue;
      marks_[index] = mark_;
      const Nfa::State& state = nfa_.state(index);
      if (state.kind == Nfa::Kind::kSplit) {
        todo.insert(todo.end(), state.targets.begin(), state.targets.end());
        moves += state.targets.size();
      } else {
        members.push_back(index);
      }
    }
    if (!work_.spend(kSubsetWork + moves + kMemberWork * members.size())) return 0;
    std::sort(members.begin(), members.end());
    const auto [known, is_new] =
        numbers_.emplace(std::move(members), static_cast<uint32_t>(automata_.states.size()));
    if (is_new) {
      order_.push_back(&known->first);
      automata_.states.emplace_back();
    }
    return known->second;
  }

  void add_calls(const Members& members, Automata::State& state) {
    std::map<uint32_t, Members> targets;
    for (const uint32_t member : members) {
      const Nfa::State& from = nfa_.state(member);
      if (from.kind != Nfa::Kind::kCall) continue;
      if (deterministic_) {
        targets[from.rule].push_back(from.target);
      } else {
        state.calls.push_back({from.rule, single(from.target)});
      }
    }
    for (const auto& [rule, list] : targets) state.calls.push_back({rule, subset(list)});
    edges_ += state.calls.size();
  }

  void add_edges(const Members& members, Automata::State& state) {
    Members readers;
    std::vector<unsigned> borders;
    for (const uint32_t member : members) {
      const Nfa::State& from = nfa_.state(member);
      if (from.kind != Nfa::Kind::kBytes) continue;
      readers.push_back(member);
      borders.insert(borders.end(), {from.first, from.last + 1u});
      if (!deterministic_) state.edges.push_back({from.first, from.last, single(from.target)});
    }
    if (deterministic_) {
      std::sort(borders.begin(), borders.end());
      borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
      for (size_t i = 0; i + 1 < borders.size(); ++i) add_interval(readers, borders, i, state);
    }
    edges_ += state.edges.size();
  }

  void add_interval(const Members& readers, const std::vector<unsigned>& borders, size_t index,
                    Automata::State& state) {
    const auto first = static_cast<uint8_t>(borders[index]);
    const auto last = static_cast<uint8_t>(borders[index + 1] - 1);
    Members targets;
    if (!work_.spend(readers.size())) return;
    for (const uint32_t reader : readers) {
      const Nfa::State& from = nfa_.state(reader);
      if (from.first <= first && first <= from.last) targets.push_back(from.target);
    }
    if (targets.empty()) return;
    const uint32_t target = subset(targets);
    if (!state.edges.empty() && state.edges.back().target == target &&
        state.edges.back().last + 1 == first) {
      state.edges.back().last = last;
    } else {
      state.edges.push_back({first, last, target});
    }
  }

  const Nfa& nfa_;
  Automata& automata_;
  const bool deterministic_;
  Work& work_;
  const size_t first_ = automata_.states.size();
  std::unordered_map<Members, uint32_t, MembersHash> numbers_;
  std::vector<const Members*> order_;
  std::vector<uint32_t> singles_;  // by state of the NFA
  std::vector<uint32_t> marks_;
  uint32_t mark_ = 0;
  size_t members_ = 0;
  size_t edges_ = 0;
};

}  // namespace

Automata make_automata(const Expressions& expressions) {
  Automata automata;
  Work work(kMaxWork);
  Nfa nfa(expressions, work);
  size_t edges = 0;
  for (uint32_t rule = 0; rule < expressions.rules().size(); ++rule) {
    work.set_limit(kMaxWork);
    const uint32_t start = nfa.build(rule);
    const auto first = static_cast<uint32_t>(automata.states.size());
    automata.starts.push_back(first);
    // As it is where the deterministic one explodes ("x.{20}$"): sets of stacks do not mind.
    size_t used = 0;
    bool done = false;
    for (const bool deterministic : {true, false}) {
      if (done) continue;
      automata.states.resize(first);
      work.set_limit(deterministic ? (work.spent() + kMaxWork) / 2 : kMaxWork);
      Subsets subsets(nfa, automata, deterministic, work);
      done = subsets.run(start, deterministic ? 4096 + 32 * nfa.size() : kMaxEdges);
      used = subsets.edges();
    }
    edges += used;
    if (!done || edges > kMaxEdges) {
      fail_usage("{}: too large: its automata have too many ways through them", expressions.what());
    }
  }
  return automata;
}

}  // namespace orthrus::grammar
