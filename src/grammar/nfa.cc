#include "grammar/nfa.h"

#include <unordered_set>

#include "base/error.h"

namespace orthrus::grammar {
namespace {

/// Rules up to this size are copied to where they are called: states of one automaton are decided
/// together, and their masks depend less on who called.
constexpr uint64_t kMaxCopiedSize = 64;
constexpr int kMaxCopiedDepth = 16;
constexpr uint64_t kTooLarge = ~uint64_t{0};
constexpr uint64_t kNotYet = kTooLarge - 1;

/// Operations that finding a state in a table is worth.
constexpr uint64_t kLookupWork = 25;

uint64_t pair_key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

}  // namespace

Nfa::Nfa(const Expressions& expressions, Work& work)
    : expressions_(expressions), work_(work), copied_sizes_(expressions.rules().size(), kNotYet) {}

uint64_t Nfa::copied_size(Expressions::Rule rule, int depth) {
  const Expressions::RuleInfo& info = expressions_.rules()[rule];
  const uint64_t own = expressions_.node(info.body).size;
  if (copied_sizes_[rule] != kNotYet) return copied_sizes_[rule];
  copied_sizes_[rule] = kTooLarge;  // also what a rule within itself finds
  if (!info.inlined || own > kMaxCopiedSize || depth > kMaxCopiedDepth) return kTooLarge;
  uint64_t size = own;
  std::vector<Expr> todo{info.body};
  while (!todo.empty()) {
    const Expressions::Node& node = expressions_.node(todo.back());
    todo.pop_back();
    todo.insert(todo.end(), node.parts.begin(), node.parts.end());
    if (node.kind != Expressions::Kind::kCall) continue;
    const uint64_t called = copied_size(node.rule, depth + 1);
    if (called == kTooLarge || (size += called) > kMaxCopiedSize) return kTooLarge;
  }
  return copied_sizes_[rule] = size;
}

uint32_t Nfa::build(Expressions::Rule rule) {
  states_.assign(1, State{});
  compiled_.clear();
  bytes_.clear();
  return compile(expressions_.rules()[rule].body, kAcceptState);
}

void Nfa::spend(uint64_t operations) {
  if (!work_.spend(operations)) fail_usage("{}: too large: too many parts", expressions_.what());
}

uint32_t Nfa::add(State state) {
  if (++total_ > Expressions::kMaxSize) {
    fail_usage("{}: too large: more than {} states", expressions_.what(), Expressions::kMaxSize);
  }
  states_.push_back(std::move(state));
  return static_cast<uint32_t>(states_.size() - 1);
}

uint32_t Nfa::bytes(uint8_t first, uint8_t last, uint32_t target) {
  spend(kLookupWork);
  const auto [known, is_new] = bytes_.emplace(std::tuple(first, last, target), 0);
  if (is_new) known->second = add({Kind::kBytes, first, last, 0, target, {}});
  return known->second;
}

uint32_t Nfa::split(std::vector<uint32_t> targets) {
  if (targets.size() == 1) return targets[0];
  return add({Kind::kSplit, 0, 0, 0, 0, std::move(targets)});
}

uint32_t Nfa::compile(Expr expr, uint32_t next) {
  spend(kLookupWork);
  if (const auto known = compiled_.find(pair_key(expr, next)); known != compiled_.end()) {
    return known->second;
  }
  const Expressions::Node& node = expressions_.node(expr);
  uint32_t start = next;
  std::vector<uint32_t> starts;
  switch (node.kind) {
    case Expressions::Kind::kLiteral:
      for (size_t i = node.bytes.size(); i-- > 0;) {
        const auto byte = static_cast<uint8_t>(node.bytes[i]);
        start = bytes(byte, byte, start);
      }
      break;
    case Expressions::Kind::kChars:
      for (const ByteSequence& sequence : node.chars) {
        uint32_t state = next;
        for (size_t i = sequence.length; i-- > 0;) {
          state = bytes(sequence.ranges[i].first, sequence.ranges[i].last, state);
        }
        starts.push_back(state);
      }
      start = split(std::move(starts));
      break;
    case Expressions::Kind::kSequence:
      for (size_t i = node.parts.size(); i-- > 0;) start = compile(node.parts[i], start);
      break;
    case Expressions::Kind::kChoice:
      for (const Expr part : node.parts) starts.push_back(compile(part, next));
      start = split(std::move(starts));
      break;
    case Expressions::Kind::kRepeat:
      start = compile_repeat(node, next);
      break;
    case Expressions::Kind::kCall:
      if (copied_size(node.rule, 0) != kTooLarge) {
        start = compile(expressions_.rules()[node.rule].body, next);
      } else {
        start = add({Kind::kCall, 0, 0, node.rule, next, {}});
      }
      break;
  }
  compiled_.emplace(pair_key(expr, next), start);
  return start;
}

uint32_t Nfa::compile_repeat(const Expressions::Node& node, uint32_t next) {
  const Expr part = node.parts[0];
  uint32_t state = next;
  if (node.max == Expressions::kUnbounded) {
    state = add({Kind::kSplit, 0, 0, 0, 0, {}});
    const uint32_t again = compile(part, state);
    states_[state].targets = {again, next};
  } else {
    for (int64_t i = node.min; i < node.max; ++i) state = split({compile(part, state), next});
  }
  for (int64_t i = 0; i < node.min; ++i) state = compile(part, state);
  return state;
}

}  // namespace orthrus::grammar
