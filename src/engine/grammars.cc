#include "engine/grammars.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus {
namespace {

constexpr size_t kKnownGrammars = 32;

}  // namespace

GrammarConstraint::GrammarConstraint(GrammarMatcher matcher, const LoadedModel& loaded,
                                     const GenerateOptions& options)
    : matcher_(std::move(matcher)),
      loaded_(loaded),
      think_token_(
          options.thinking_begin.empty() ? -1 : loaded.tokenizer.token_id(options.thinking_begin)),
      first_phase_(options.thinking_end.empty()     ? Phase::kGrammar
                   : options.thinking_begin.empty() ? Phase::kThinking
                   : think_token_ >= 0              ? Phase::kStart
                                                    : Phase::kGrammar),
      thinking_end_(options.thinking_end),
      phase_(first_phase_) {}

void GrammarConstraint::reset() {
  matcher_.rollback(matcher_.size());
  tokens_.clear();
  thought_.clear();
  grammar_begin_ = 0;
  phase_ = first_phase_;
}

void GrammarConstraint::push(int32_t token) {
  const bool was_alive = alive();
  tokens_.push_back(token);
  if (phase_ == Phase::kStart) {
    phase_ = token == think_token_ ? Phase::kThinking : Phase::kGrammar;
    if (phase_ == Phase::kThinking) return;
  }
  if (phase_ == Phase::kThinking) {
    if (loaded_.tokenizer.has_token(token)) thought_ += loaded_.tokenizer.token_bytes(token);
    if (thought_.find(thinking_end_) != std::string::npos) {
      phase_ = Phase::kGrammar;
      grammar_begin_ = static_cast<int64_t>(tokens_.size());
    }
    if (thought_.size() > thinking_end_.size()) {
      thought_.erase(0, thought_.size() - thinking_end_.size());
    }
    return;
  }
  if (was_alive) matcher_.accept(token);  // else it stays behind: not alive
}

/// Goes from the answer asked about last to this one.
void GrammarConstraint::follow(std::span<const int32_t> answer) {
  const auto same = std::mismatch(tokens_.begin(), tokens_.end(), answer.begin(), answer.end());
  int64_t kept = same.first - tokens_.begin();
  if (kept < static_cast<int64_t>(tokens_.size())) {
    if (phase_ == Phase::kGrammar && kept > grammar_begin_) {
      matcher_.rollback(std::max<int64_t>(0, matcher_.size() - (kept - grammar_begin_)));
      tokens_.resize(static_cast<size_t>(kept));
    } else {
      reset();
      kept = 0;
    }
  }
  for (const int32_t token : answer.subspan(static_cast<size_t>(kept))) push(token);
}

std::span<const uint64_t> GrammarConstraint::masked() {
  const auto set = [&](int32_t token, bool may) {
    const uint64_t bit = uint64_t{1} << (token % 64);
    uint64_t& word = words_[static_cast<size_t>(token / 64)];
    word = may ? word | bit : word & ~bit;
  };
  const auto& config = loaded_.model.config;
  const auto words = static_cast<size_t>((config.vocab_size + 63) / 64);
  if (phase_ == Phase::kThinking) {
    words_.assign(words, ~uint64_t{0});
    for (const int32_t token : config.eos_token_ids) set(token, false);  // the answer is to come
    return words_;
  }
  if (!alive()) {
    words_.assign(words, 0);
    return words_;
  }
  const std::span<const uint64_t> mask = matcher_.mask();
  if (phase_ != Phase::kStart) return mask;
  words_.assign(mask.begin(), mask.end());
  words_.resize(words);
  set(think_token_, true);
  return words_;
}

std::span<const uint64_t> GrammarConstraint::allowed(std::span<const int32_t> answer) {
  try {
    if (!error_) {
      follow(answer);
      return masked();
    }
  } catch (const Error& error) {
    error_ = error;  // of this answer alone
  }
  words_.assign(1, 0);
  return words_;
}

std::shared_ptr<const TokenTrie> Grammars::tokens() {
  std::call_once(tokens_once_, [this] {
    const Tokenizer& tokenizer = loaded_.tokenizer;
    std::vector<std::string_view> texts(static_cast<size_t>(
        std::max<int64_t>(tokenizer.vocab_size(), loaded_.model.config.vocab_size)));
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if (!tokenizer.has_token(id) || tokenizer.is_special(id)) continue;
      texts[static_cast<size_t>(id)] = tokenizer.token_bytes(id);
    }
    tokens_ = std::make_shared<const TokenTrie>(texts);
  });
  return tokens_;
}

std::shared_ptr<Grammars::Known> Grammars::known(const GenerateOptions& options) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& known) {
    return known->grammar == options.grammar && known->json_schema == options.json_schema;
  });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    known_.push_front(std::make_shared<Known>());
    known_.front()->grammar = options.grammar;
    known_.front()->json_schema = options.json_schema;
    if (known_.size() > kKnownGrammars) known_.pop_back();
  }
  return known_.front();
}

std::shared_ptr<const Grammar> Grammars::compiled(const GenerateOptions& options) {
  const bool grammar = !options.grammar.empty(), schema = !options.json_schema.empty();
  if (!grammar && !schema) return nullptr;
  if (grammar && schema) fail_usage("grammar and json_schema: expected one of them, found both");
  const std::shared_ptr<Known> known = this->known(options);
  const std::lock_guard lock(known->mutex);
  if (!known->compiled && !known->error) {
    try {
      auto made = grammar ? parse_gbnf(known->grammar) : parse_json_schema(known->json_schema);
      made->local_masks(tokens());  // compares its states, which may take as long
      known->compiled = std::move(made);
    } catch (const Error& error) {
      known->error = error;
    }
  }
  if (known->error) throw *known->error;
  return known->compiled;
}

void Grammars::prepare(const GenerateOptions& options) { constraint(options); }

std::unique_ptr<GrammarConstraint> Grammars::constraint(const GenerateOptions& options) {
  auto grammar = compiled(options);
  if (!grammar) return nullptr;
  GrammarMatcher matcher(std::move(grammar), tokens(), loaded_.model.config.eos_token_ids);
  return std::make_unique<GrammarConstraint>(std::move(matcher), loaded_, options);
}

}  // namespace orthrus
