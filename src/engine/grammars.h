#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/token_constraint.h"
#include "engine/loaded_model.h"
#include "grammar/grammar.h"
#include "grammar/grammar_matcher.h"
#include "orthrus/error.h"
#include "orthrus/options.h"

namespace orthrus {

/// What is wrong with the form of an answer, found while it was written.
struct FormError : Error {
  explicit FormError(const Error& error) : Error(error) {}
};

/// The form that one answer must have: a grammar, behind a thought where the options allow one.
class GrammarConstraint : public TokenConstraint {
 public:
  GrammarConstraint(GrammarMatcher matcher, const LoadedModel& loaded,
                    const GenerateOptions& options);

  std::span<const uint64_t> allowed(std::span<const int32_t> answer) override;
  /// Why no token is allowed any more, where the grammar itself is the reason.
  const std::optional<Error>& error() const { return error_; }

 private:
  enum class Phase : uint8_t { kStart, kThinking, kGrammar };

  void follow(std::span<const int32_t> answer);
  void reset();
  void push(int32_t token);
  std::span<const uint64_t> masked();
  /// Whether all of the answer's tokens behind the thought are the grammar's.
  bool alive() const {
    return matcher_.size() + grammar_begin_ == static_cast<int64_t>(tokens_.size());
  }

  GrammarMatcher matcher_;
  const LoadedModel& loaded_;
  const int32_t think_token_;
  const Phase first_phase_;
  const std::string thinking_end_;
  Phase phase_;
  std::string thought_;          // its last bytes
  std::vector<int32_t> tokens_;  // of the answer that was asked about last
  int64_t grammar_begin_ = 0;    // index of the first token behind the thought
  std::vector<uint64_t> words_;  // a mask of this one's own
  std::optional<Error> error_;
};

/// Makes the constraints of a model's answers. Keeps the grammars that were used last, and what is
/// known of their masks or wrong with them. Any thread; while one compiles a grammar, only those
/// that want the same one wait for it.
class Grammars {
 public:
  /// The model must outlive this and its constraints.
  explicit Grammars(const LoadedModel& loaded) : loaded_(loaded) {}

  /// Compiles what constraint() is going to need, which takes up to a second; constraint() then
  /// takes no time worth speaking of. The same errors.
  void prepare(const GenerateOptions& options);
  /// Null where the options ask for no form. Error(kUsage) for a grammar or schema that is wrong
  /// or too large, and for both.
  std::unique_ptr<GrammarConstraint> constraint(const GenerateOptions& options);

 private:
  struct Known {
    std::string grammar, json_schema;  // one of them is empty
    std::mutex mutex;                  // of what follows; held while it is made
    std::shared_ptr<const Grammar> compiled;
    std::optional<Error> error;
  };

  /// Null where the options ask for no form.
  std::shared_ptr<const Grammar> compiled(const GenerateOptions& options);
  std::shared_ptr<Known> known(const GenerateOptions& options);
  std::shared_ptr<const TokenTrie> tokens();

  const LoadedModel& loaded_;
  std::once_flag tokens_once_;
  std::shared_ptr<const TokenTrie> tokens_;
  std::mutex mutex_;                         // of known_
  std::list<std::shared_ptr<Known>> known_;  // the one used last is first
};

}  // namespace orthrus
