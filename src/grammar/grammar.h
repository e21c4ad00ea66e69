#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace orthrus {

class TokenTrie;
namespace grammar {
class LocalMasks;
}

/// A context-free language over bytes, compiled: every rule is a small automaton whose edges read a
/// byte or call a rule. It is free of left recursion, and from every state a text of the language
/// can be completed. Immutable and safe to use from many threads. Accepted texts: docs/grammar.md.
class Grammar {
 public:
  /// Bytes that no edge of the grammar tells apart are one class; classes are intervals of bytes.
  struct Edge {
    uint8_t first_class = 0;
    uint8_t last_class = 0;
    uint32_t target = 0;
  };
  struct Call {
    uint32_t start = 0;     ///< first state of the called rule
    uint32_t target = 0;    ///< where its caller goes on
    bool nullable = false;  ///< whether the rule reads the empty text
  };
  struct State {
    std::span<const Edge> edges;
    std::span<const Call> calls;
    int32_t depth_needed = 0;  ///< nested calls without which its rule cannot be completed
    bool final = false;        ///< its rule may end here
    /// Its rule ends here: a call that would return to it need not return.
    bool only_final() const { return final && edges.empty() && calls.empty(); }
  };

  /// What a state may be followed by; see State.
  struct Tables {
    struct Row {
      uint32_t edges_end = 0;
      uint32_t calls_end = 0;
      int32_t depth_needed = 0;
      bool final = false;
    };
    std::vector<Row> rows;  ///< by state; each begins where its predecessor ends
    std::vector<Edge> edges;
    std::vector<Call> calls;
    std::array<uint8_t, 256> byte_classes{};
    uint32_t start = 0;
  };

  /// Calls nest at most so deep; what would need more is not accepted. A JSON value in another one
  /// is one or two calls.
  static constexpr int32_t kMaxDepth = 1000;

  explicit Grammar(Tables tables);
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  uint32_t start() const { return tables_.start; }
  size_t states() const { return tables_.rows.size(); }
  State state(uint32_t index) const;
  uint8_t byte_class(uint8_t byte) const { return tables_.byte_classes[byte]; }
  size_t classes() const { return classes_; }

  /// What is known of the masks of this grammar for a vocabulary, shared by all matchers of both.
  std::shared_ptr<grammar::LocalMasks> local_masks(
      const std::shared_ptr<const TokenTrie>& tokens) const;

 private:
  Tables tables_;
  size_t classes_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<
      std::pair<std::weak_ptr<const TokenTrie>, std::shared_ptr<grammar::LocalMasks>>>
      local_masks_;
};

/// A grammar in llama.cpp's GBNF, in which `%json {...}` stands for the values of a JSON schema;
/// its start is the rule "root". Error(kUsage) names line and column of what is malformed,
/// undefined, left-recursive or too large.
std::shared_ptr<const Grammar> parse_gbnf(std::string_view text);

/// The JSON texts that satisfy a JSON schema (docs/grammar.md lists the keywords). Properties come
/// in the order of the schema, hence the ordered type. Error(kUsage) names the keyword and its path
/// for what cannot be enforced exactly.
std::shared_ptr<const Grammar> json_schema_grammar(const nlohmann::ordered_json& schema);

/// Finds what of a schema cannot be enforced without compiling it, in a tenth of the time: the same
/// errors, begun with `what`, but for those of a schema that no text satisfies, or that is too
/// large. The states it takes, roughly.
uint64_t check_json_schema(const nlohmann::ordered_json& schema, std::string_view what);

/// The same for the text of a schema. Error(kUsage) also where it is not JSON.
std::shared_ptr<const Grammar> parse_json_schema(std::string_view schema);

/// Any JSON object.
std::shared_ptr<const Grammar> json_object_grammar();

}  // namespace orthrus
