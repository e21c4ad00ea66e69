#include "grammar/compile.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/left_recursion.h"

namespace orthrus::grammar {
namespace {

constexpr int32_t kNever = -1;

/// For each state the depth of calls without which its rule cannot be completed; kNever where no
/// text completes it. Dijkstra's algorithm, from the ends of the rules backwards.
class DepthNeeded {
 public:
  explicit DepthNeeded(const Automata& automata)
      : automata_(automata),
        readers_(automata.states.size()),
        callers_(automata.states.size()),
        depths_(automata.states.size(), kNever) {
    for (uint32_t index = 0; index < automata.states.size(); ++index) {
      const Automata::State& state = automata.states[index];
      for (const auto& edge : state.edges) readers_[edge.target].push_back(index);
      for (const auto& call : state.calls) {
        callers_[call.target].push_back({index, call});
        callers_[automata.starts[call.rule]].push_back({index, call});
      }
    }
  }

  std::vector<int32_t> run() {
    for (uint32_t index = 0; index < automata_.states.size(); ++index) {
      if (automata_.states[index].final) todo_.emplace(0, index);
    }
    while (!todo_.empty()) {
      const auto [depth, index] = todo_.top();
      todo_.pop();
      if (depths_[index] != kNever) continue;
      depths_[index] = depth;
      for (const uint32_t reader : readers_[index]) todo_.emplace(depth, reader);
      for (const auto& [caller, call] : callers_[index]) {
        const int32_t inner = depths_[automata_.starts[call.rule]];
        const int32_t rest = depths_[call.target];
        if (inner != kNever && rest != kNever) todo_.emplace(std::max(inner + 1, rest), caller);
      }
    }
    return std::move(depths_);
  }

 private:
  using Item = std::pair<int32_t, uint32_t>;
  const Automata& automata_;
  std::vector<std::vector<uint32_t>> readers_;
  std::vector<std::vector<std::pair<uint32_t, Automata::Call>>> callers_;
  std::vector<int32_t> depths_;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> todo_;
};

/// Writes the states that the root can reach and that can be completed.
class TableWriter {
 public:
  TableWriter(const Automata& automata, const std::vector<bool>& nullable,
              const std::vector<int32_t>& depths)
      : automata_(automata),
        nullable_(nullable),
        depths_(depths),
        numbers_(automata.states.size(), kUnnumbered) {}

  Grammar::Tables run(uint32_t start) {
    tables_.start = number(start);
    for (size_t done = 0; done < order_.size(); ++done) collect(automata_.states[order_[done]]);
    set_classes();
    for (const uint32_t index : order_) write(index);
    return std::move(tables_);
  }

 private:
  static constexpr uint32_t kUnnumbered = ~0u;

  uint32_t number(uint32_t state) {
    if (numbers_[state] == kUnnumbered) {
      numbers_[state] = static_cast<uint32_t>(order_.size());
      order_.push_back(state);
    }
    return numbers_[state];
  }

  bool alive(const Automata::Call& call) const {
    return depths_[call.target] != kNever && depths_[automata_.starts[call.rule]] != kNever;
  }

  void collect(const Automata::State& state) {
    for (const auto& edge : state.edges) {
      if (depths_[edge.target] == kNever) continue;
      number(edge.target);
      begins_[edge.first] = true;
      if (edge.last < 255) begins_[edge.last + 1u] = true;
    }
    for (const auto& call : state.calls) {
      if (!alive(call)) continue;
      number(automata_.starts[call.rule]);
      number(call.target);
    }
  }

  void set_classes() {
    uint8_t current = 0;
    for (size_t byte = 1; byte < 256; ++byte) {
      if (begins_[byte]) ++current;
      tables_.byte_classes[byte] = current;
    }
  }

  void write(uint32_t index) {
    const Automata::State& state = automata_.states[index];
    for (const auto& edge : state.edges) {
      if (depths_[edge.target] == kNever) continue;
      tables_.edges.push_back({tables_.byte_classes[edge.first], tables_.byte_classes[edge.last],
                               numbers_[edge.target]});
    }
    for (const auto& call : state.calls) {
      if (!alive(call)) continue;
      tables_.calls.push_back(
          {numbers_[automata_.starts[call.rule]], numbers_[call.target], nullable_[call.rule]});
    }
    tables_.rows.push_back({static_cast<uint32_t>(tables_.edges.size()),
                            static_cast<uint32_t>(tables_.calls.size()), depths_[index],
                            state.final});
  }

  const Automata& automata_;
  const std::vector<bool>& nullable_;
  const std::vector<int32_t>& depths_;
  std::vector<uint32_t> numbers_;
  std::vector<uint32_t> order_;
  std::array<bool, 256> begins_{};
  Grammar::Tables tables_;
};

}  // namespace

std::shared_ptr<const Grammar> compile(const Expressions& expressions, Expressions::Rule root) {
  const Automata automata = make_automata(expressions);
  const std::vector<bool> nullable = refuse_left_recursion(expressions, automata);
  const std::vector<int32_t> depths = DepthNeeded(automata).run();
  const uint32_t start = automata.starts[root];
  if (depths[start] == kNever) {
    fail_usage("{}: no finite text satisfies it", expressions.what());
  }
  if (depths[start] > Grammar::kMaxDepth) {
    fail_usage("{}: every text nests rules more than {} deep", expressions.what(),
               Grammar::kMaxDepth);
  }
  return std::make_shared<Grammar>(TableWriter(automata, nullable, depths).run(start));
}

}  // namespace orthrus::grammar
