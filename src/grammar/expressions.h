#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus::grammar {

/// Code points from `first` to `last`, both included.
struct CodePoints {
  char32_t first = 0;
  char32_t last = 0;
};

/// Sorted, disjoint and without surrogates, which UTF-8 does not have.
std::vector<CodePoints> normalized(std::vector<CodePoints> ranges);
/// All that are in none of the ranges.
std::vector<CodePoints> complement(std::vector<CodePoints> ranges);
/// Those in both; each normalized.
std::vector<CodePoints> intersection(const std::vector<CodePoints>& a,
                                     const std::vector<CodePoints>& b);

/// A sequence of up to four ranges of bytes.
struct ByteSequence {
  struct Range {
    uint8_t first = 0;
    uint8_t last = 0;
  };
  std::array<Range, 4> ranges;
  size_t length = 0;
};

/// The UTF-8 encodings of normalized ranges.
std::vector<ByteSequence> utf8_sequences(const std::vector<CodePoints>& ranges);

/// Rules and the expressions they stand for, from which a grammar is compiled. An expression is
/// known by its number and may be part of several others; so may a long common rest of sequences.
class Expressions {
 public:
  using Expr = uint32_t;
  using Rule = uint32_t;
  static constexpr int64_t kUnbounded = -1;
  static constexpr int64_t kMaxRepeat = 32768;
  static constexpr uint64_t kMaxSize = 1u << 18;  ///< automaton states, in all

  enum class Kind { kLiteral, kChars, kSequence, kChoice, kRepeat, kCall };
  struct Node {
    Kind kind = Kind::kLiteral;
    std::string bytes;                ///< kLiteral
    std::vector<ByteSequence> chars;  ///< kChars
    std::vector<Expr> parts;          ///< kSequence, kChoice; the repeated one of kRepeat
    int64_t min = 0;
    int64_t max = 0;    ///< or kUnbounded
    Rule rule = 0;      ///< kCall
    uint64_t size = 0;  ///< states it takes, calls counted as one
  };
  struct RuleInfo {
    std::string name;
    std::string where;  ///< for messages: line and column, or a path
    Expr body = 0;
    bool inlined = true;  ///< may be copied to where it is called, if it is small
  };

  /// `what` begins every message.
  explicit Expressions(std::string what) : what_(std::move(what)) {}

  Expr literal(std::string_view bytes);
  /// One character. Matches nothing where there are no ranges.
  Expr chars(std::vector<CodePoints> ranges);
  Expr sequence(std::vector<Expr> parts);
  Expr choice(std::vector<Expr> parts);
  /// A large part that is repeated often becomes a rule of its own, so that a count costs one
  /// state.
  Expr repeat(Expr part, int64_t min, int64_t max);
  /// Without that.
  Expr repeat_in_place(Expr part, int64_t min, int64_t max);
  Expr optional(Expr part) { return repeat(part, 0, 1); }
  Rule add_rule(std::string name, std::string where);
  void define(Rule rule, Expr body) { rules_[rule].body = body; }
  /// A rule that stays one automaton for all its callers.
  void keep_apart(Rule rule) { rules_[rule].inlined = false; }
  Expr call(Rule rule);
  /// A new rule for an expression.
  Expr as_rule(std::string name, Expr body, bool inlined);

  const Node& node(Expr expr) const { return nodes_[expr]; }
  const std::vector<RuleInfo>& rules() const { return rules_; }
  /// States that all rules take, roughly: what is shared or copied counts once.
  uint64_t size() const;
  const std::string& what() const { return what_; }

 private:
  Expr add(Node node);

  std::string what_;
  std::vector<Node> nodes_;
  size_t parts_ = 0;  // of all nodes
  std::vector<RuleInfo> rules_;
};

}  // namespace orthrus::grammar
