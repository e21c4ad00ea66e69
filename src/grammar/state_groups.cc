#include "grammar/state_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "grammar/work.h"

namespace orthrus::grammar {
namespace {

/// Operations that the comparisons may take, of some nanoseconds each: well below a second.
constexpr uint64_t kMaxWork = 60'000'000;
/// Measured: finding the part of a state in a map.
constexpr uint64_t kStateWork = 40;

/// What a state looks like one byte ahead. A called rule counts as itself: only what follows it is
/// compared further, and not even that where the rule may have read nothing.
std::vector<uint32_t> signature(const Grammar& grammar, uint32_t index,
                                const std::vector<uint32_t>& groups) {
  const Grammar::State state = grammar.state(index);
  std::vector<uint32_t> out{state.final, static_cast<uint32_t>(state.depth_needed),
                            static_cast<uint32_t>(state.edges.size())};
  for (const auto& edge : state.edges) {
    out.insert(out.end(), {edge.first_class, edge.last_class, groups[edge.target]});
  }
  for (const auto& call : state.calls) {
    const Grammar::State target = grammar.state(call.target);
    out.insert(out.end(), {call.start, call.nullable, target.only_final(),
                           static_cast<uint32_t>(target.depth_needed),
                           call.nullable ? call.target : groups[call.target]});
  }
  return out;
}

/// The states that lead to each state, as one array and where each state's part ends.
struct Predecessors {
  std::vector<uint32_t> begins;
  std::vector<uint32_t> states;
};

Predecessors predecessors(const Grammar& grammar) {
  Predecessors out;
  const auto count = static_cast<uint32_t>(grammar.states());
  auto each = [&](auto visit) {
    for (uint32_t index = 0; index < count; ++index) {
      const Grammar::State state = grammar.state(index);
      for (const auto& edge : state.edges) visit(edge.target, index);
      for (const auto& call : state.calls) visit(call.target, index);
    }
  };
  out.begins.assign(count + 1, 0);
  each([&](uint32_t target, uint32_t) { ++out.begins[target + 1]; });
  for (uint32_t index = 0; index < count; ++index) out.begins[index + 1] += out.begins[index];
  out.states.resize(out.begins.back());
  std::vector<uint32_t> next(out.begins.begin(), out.begins.end() - 1);
  each([&](uint32_t target, uint32_t index) { out.states[next[target]++] = index; });
  return out;
}

}  // namespace

std::vector<uint32_t> state_groups(const Grammar& grammar, size_t length) {
  const auto count = static_cast<uint32_t>(grammar.states());
  const Predecessors before = predecessors(grammar);
  std::vector<uint32_t> groups(count, 0), changed(count);
  std::iota(changed.begin(), changed.end(), 0);
  std::vector<std::vector<uint32_t>> members{changed};
  std::vector<bool> looked_at(count, false);
  Work work(kMaxWork);
  // Moore's refinement, a round for each byte. A round looks only at states of which a successor
  // got another number in the round before; so that they are few, the largest part of a group
  // keeps its number.
  for (size_t round = 0; round <= length && !changed.empty(); ++round) {
    std::map<uint32_t, std::map<std::vector<uint32_t>, std::vector<uint32_t>>> touched;
    for (const uint32_t index : changed) {
      auto seen = signature(grammar, index, groups);
      if (!work.spend(kStateWork + 2 * seen.size())) {
        fail_usage("grammar: too large: its states have too many ways to go on");
      }
      touched[groups[index]][std::move(seen)].push_back(index);
      looked_at[index] = true;
    }
    std::vector<uint32_t> moved;
    for (auto& [group, by_signature] : touched) {
      std::vector<std::vector<uint32_t>> parts(1);
      for (const uint32_t index : members[group]) {
        if (!looked_at[index]) parts[0].push_back(index);
      }
      for (auto& part : by_signature) parts.push_back(std::move(part.second));
      auto largest = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
        return a.size() < b.size();
      });
      members[group] = std::move(*largest);
      parts.erase(largest);
      for (auto& part : parts) {
        if (part.empty()) continue;
        for (const uint32_t index : part) groups[index] = static_cast<uint32_t>(members.size());
        moved.insert(moved.end(), part.begin(), part.end());
        members.push_back(std::move(part));
      }
    }
    for (const uint32_t index : changed) looked_at[index] = false;
    changed.clear();
    for (const uint32_t index : moved) {
      changed.insert(changed.end(), before.states.begin() + before.begins[index],
                     before.states.begin() + before.begins[index + 1]);
    }
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  }
  return groups;
}

}  // namespace orthrus::grammar
