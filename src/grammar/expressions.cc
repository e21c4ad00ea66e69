#include "grammar/expressions.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus::grammar {
namespace {

constexpr size_t kMaxRules = 1u << 16;
constexpr size_t kMaxParts = 1u << 22;

/// A repeated expression of more states becomes a rule.
constexpr uint64_t kMaxRepeatedSize = 1024;

/// How often a repeated part is built.
uint64_t copies(int64_t min, int64_t max) {
  return static_cast<uint64_t>(
      std::max<int64_t>(max == Expressions::kUnbounded ? min + 1 : max, 1));
}

}  // namespace

Expressions::Expr Expressions::add(Node node) {
  node.size = std::min(node.size, kMaxSize + 1);
  parts_ += node.parts.size() + node.chars.size();
  if (nodes_.size() >= kMaxSize || parts_ > kMaxParts) fail_usage("{}: too large", what_);
  nodes_.push_back(std::move(node));
  return static_cast<Expr>(nodes_.size() - 1);
}

Expressions::Expr Expressions::literal(std::string_view bytes) {
  Node node;
  node.kind = Kind::kLiteral;
  node.bytes = bytes;
  node.size = bytes.size();
  return add(std::move(node));
}

Expressions::Expr Expressions::chars(std::vector<CodePoints> ranges) {
  Node node;
  node.kind = Kind::kChars;
  node.chars = utf8_sequences(normalized(std::move(ranges)));
  node.size = 1;
  for (const ByteSequence& sequence : node.chars) node.size += sequence.length - 1;
  return add(std::move(node));
}

Expressions::Expr Expressions::sequence(std::vector<Expr> parts) {
  if (parts.size() == 1) return parts[0];
  Node node;
  node.kind = Kind::kSequence;
  for (const Expr part : parts) node.size += nodes_[part].size;
  node.parts = std::move(parts);
  return add(std::move(node));
}

Expressions::Expr Expressions::choice(std::vector<Expr> parts) {
  if (parts.size() == 1) return parts[0];
  Node node;
  node.kind = Kind::kChoice;
  node.size = 1;
  for (const Expr part : parts) node.size += nodes_[part].size;
  node.parts = std::move(parts);
  return add(std::move(node));
}

Expressions::Expr Expressions::repeat(Expr part, int64_t min, int64_t max) {
  if (max == 0) return literal("");
  const Node& inner = nodes_[part];
  // Counts of optional things would read one text in many ways: (x{0,a}){m,n} is x{0,a n}.
  if (inner.kind == Kind::kRepeat && inner.min == 0) {
    const bool bounded = inner.max != kUnbounded && max != kUnbounded;
    if (!bounded || inner.max * max <= kMaxRepeat) {
      return repeat(inner.parts[0], 0, bounded ? inner.max * max : kUnbounded);
    }
  }
  if (copies(min, max) > 1 && inner.size > 1 && inner.size * copies(min, max) > kMaxRepeatedSize) {
    part = as_rule("(repeated)", part, false);
  }
  return repeat_in_place(part, min, max);
}

Expressions::Expr Expressions::repeat_in_place(Expr part, int64_t min, int64_t max) {
  Node node;
  node.kind = Kind::kRepeat;
  node.parts = {part};
  node.min = min;
  node.max = max;
  node.size = nodes_[part].size * copies(min, max) + 1;
  return add(std::move(node));
}

Expressions::Rule Expressions::add_rule(std::string name, std::string where) {
  if (rules_.size() >= kMaxRules) fail_usage("{}: more than {} rules", what_, kMaxRules);
  rules_.push_back({std::move(name), std::move(where), 0, true});
  return static_cast<Rule>(rules_.size() - 1);
}

Expressions::Expr Expressions::call(Rule rule) {
  Node node;
  node.kind = Kind::kCall;
  node.rule = rule;
  node.size = 1;
  return add(std::move(node));
}

Expressions::Expr Expressions::as_rule(std::string name, Expr body, bool inlined) {
  const Rule rule = add_rule(std::move(name), "");
  rules_[rule].body = body;
  rules_[rule].inlined = inlined;
  return call(rule);
}

uint64_t Expressions::size() const {
  uint64_t size = 0;
  for (const RuleInfo& rule : rules_) size += nodes_[rule.body].size;
  return size;
}

}  // namespace orthrus::grammar
