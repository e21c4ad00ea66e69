#include "decode/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "decode/consensus.h"
#include "decode/draft_length.h"
#include "decode/row_scan.h"
#include "decode/row_softmax.h"
#include "decode/sampler.h"

namespace orthrus {
namespace {

/// Prompt rows a pass whose logits are kept: they take vocab_size floats each.
constexpr int64_t kScoredRows = 32;

/// Tokens that prompt and answer may have together.
int64_t token_limit(const Decoder::Setup& setup) {
  const int64_t prompt = static_cast<int64_t>(setup.prompt.size());
  const int64_t wanted = setup.options->max_new_tokens;
  if (wanted < -1) fail_usage("max_new_tokens: expected -1 or more, found {}", wanted);
  if (prompt > setup.max_seq_len) {
    fail("prompt: expected at most {} tokens (max_seq_len), found {}", setup.max_seq_len, prompt);
  }
  const int64_t room = setup.max_seq_len - prompt;
  return prompt + (wanted < 0 ? room : std::min(wanted, room));
}

/// Drafts a cycle makes at most; -1: automatic.
int64_t draft_limit(const Decoder::Setup& setup) {
  const GenerateOptions& options = *setup.options;
  const int64_t full = setup.model->config.block_size - 1;
  const bool can_draft = setup.drafter != nullptr || setup.model->has_diffusion();
  if (options.draft_max < -1) {
    fail_usage("draft_max: expected -1 (automatic) or more, found {}", options.draft_max);
  }
  if (!options.use_diffusion_mode || !can_draft || full < 1) return 0;
  if (options.draft_max >= 0) return std::min(options.draft_max, full);
  // The text of the other rules depends on the borders of the blocks, so it must not depend on
  // time.
  return options.consensus == Consensus::kExact ? -1 : full;
}

}  // namespace

int64_t reusable_prompt(int64_t prompt_size, const GenerateOptions& options) {
  return options.prompt_logprobs ? 0 : prompt_size - 1;
}

std::vector<int32_t> end_tokens(const GenerateOptions& options, std::span<const int32_t> eos) {
  std::vector<int32_t> ends = options.stop_token_ids;
  if (!options.ignore_eos) ends.insert(ends.end(), eos.begin(), eos.end());
  return ends;
}

struct Decoder::Impl {
  enum class Phase : uint8_t { kPrefill, kCycle, kDraft, kVerify, kFinished };

  explicit Impl(const Setup& setup);

  Span plan(int64_t max_rows, int64_t companions);
  void consume(std::span<const float> logits);
  void finish(FinishReason reason);
  const GenerateResult& checked_result() const {
    if (error) throw *error;
    return result;
  }
  std::span<const int32_t> known() const { return history(count); }

  std::span<const int32_t> history(int64_t position) const {
    return std::span(tokens).first(static_cast<size_t>(position));
  }
  /// Row i of what the planned span gave: of logits, as wide as they may be, or of the scan.
  LogitsRow row(std::span<const float> logits, int64_t i) const {
    if (scan) return {{}, &*scan, i};
    const size_t width = logits.size() / static_cast<size_t>(planned_rows);
    return {logits.subspan(static_cast<size_t>(i) * width, width)};
  }

  Span plan_prefill(int64_t max_rows);
  Span plan_cycle(int64_t max_rows, int64_t companions);
  Span plan_draft();
  Span plan_verify(int64_t max_rows);
  int64_t choose_drafts(int64_t max_rows, int64_t companions);
  void take_drafts_of_drafter();
  bool in_prefill() const {
    return phase == Phase::kPrefill || (phase == Phase::kCycle && table.length() < count - 1);
  }
  /// Where the prefill ends: a row whose token is followed by a decided one needs no logits.
  int64_t prefill_end() const { return phase == Phase::kPrefill ? prompt_size : count - 1; }
  bool scores_prompt() const { return phase == Phase::kPrefill && prompt_logprobs; }
  PrefillPace::Prompt next_prompt_rows() const {
    const int64_t most = scores_prompt() ? std::min(kScoredRows, prefill_chunk) : prefill_chunk;
    return {std::min(prefill_end() - table.length(), most), table.length(), scores_prompt()};
  }
  /// Where the owner has not reserved the whole generation: room for what is decided and a margin,
  /// in which drafts at hand lie.
  int64_t capacity_at(int64_t decided) const {
    return std::min(limit, decided + std::max(kKvBlockTokens, block_size));
  }
  int64_t capacity_wanted() const { return capacity_at(count + block_size); }
  void recompute();

  void consume_prefill(std::span<const float> logits);
  void consume_draft(std::span<const float> logits);
  void consume_verify(std::span<const float> logits);
  /// Emits the token of an AR row where no draft is at hand.
  void emit_chosen(const LogitsRow& row);
  /// `row`: of the AR view, which the token follows.
  void emit(int32_t token, const LogitsRow& row);
  void score_prompt(std::span<const float> logits);
  TokenLogprobs logprobs_of(int32_t token, std::span<const float> logits) {
    return token_logprobs(RowSoftmax(ops, logits, weights), token, std::max<int64_t>(logprobs, 0));
  }
  bool hand_to_sink(int32_t token);
  void fail_here();

  const int64_t vocab;
  const int64_t prompt_size;
  const int64_t limit;      // tokens of prompt and answer together
  const int64_t draft_max;  // -1: automatic
  const int64_t block_size;
  const int64_t prefill_chunk;
  const int64_t logprobs;  // most likely tokens; -1: none
  const bool prompt_logprobs;
  const RowOps& ops;
  BlockTable& table;
  CostModel* const cost;
  TokenSink* const sink;
  Drafter* const drafter;
  const std::vector<int32_t> ends;
  const std::vector<int32_t> silent_ends;  // the sink never hears of them
  Sampler sampler;
  ConsensusJudge judge;
  std::optional<DraftLength> draft_length;
  std::optional<RowScan> scan;  // where nothing but the tokens is wanted of the rows

  Phase phase = Phase::kPrefill;
  std::vector<int32_t> tokens;  // [limit]: prompt, answer, then the drafts at hand
  int64_t count;                // tokens decided
  int64_t drafts = 0;           // drafts at hand, at tokens[count..]
  int64_t planned = 0;          // rows of the planned span
  int64_t planned_rows = 0;     // of these, those whose logits or tokens are wanted
  std::vector<int32_t> block;   // anchor and masks of a diffusion span
  GenerateResult result;
  double sink_seconds = 0;
  std::vector<float> weights;  // [vocab] scratch of log probabilities
  std::optional<Error> error;
};

Decoder::Impl::Impl(const Setup& setup)
    : vocab(setup.model->config.vocab_size),
      prompt_size(static_cast<int64_t>(setup.prompt.size())),
      limit(token_limit(setup)),
      draft_max(draft_limit(setup)),
      block_size(std::max<int64_t>(setup.model->config.block_size, 1)),
      prefill_chunk(std::max<int64_t>(setup.prefill_chunk, 1)),
      logprobs(setup.options->logprobs),
      prompt_logprobs(setup.options->prompt_logprobs),
      ops(row_ops(setup.isa)),
      table(*setup.table),
      cost(setup.cost),
      sink(setup.sink),
      drafter(setup.drafter),
      ends(end_tokens(*setup.options, setup.eos_token_ids)),
      silent_ends(setup.options->stop_token_ids),
      sampler(setup.options->sampling, vocab, setup.isa, prompt_size, setup.constraint),
      judge(*setup.options, sampler, vocab, setup.isa),
      tokens(static_cast<size_t>(limit)),
      count(prompt_size) {
  ORTHRUS_CHECK(prompt_size > 0 && table.length() <= prompt_size);
  for (const int32_t token : setup.prompt) {
    if (token < 0 || token >= vocab) {
      fail("prompt: expected token ids below {}, found {}", vocab, token);
    }
  }
  std::copy(setup.prompt.begin(), setup.prompt.end(), tokens.begin());
  for (const int32_t token : silent_ends) {
    if (token < 0 || token >= vocab) {
      fail_usage("stop_token_ids: expected token ids below {}, found {}", vocab, token);
    }
  }
  if (logprobs < -1) fail_usage("logprobs: expected -1 (none) or more, found {}", logprobs);
  // The last token's row gives the first logits, so it always runs.
  table.set_length(std::min(table.length(), reusable_prompt(prompt_size, *setup.options)));
  result.prompt_tokens = prompt_size;
  result.cached_tokens = table.length();
  const size_t room = static_cast<size_t>(limit - prompt_size);
  result.token_ids.reserve(room);
  result.drafted_per_cycle.reserve(room);
  result.accepted_per_cycle.reserve(room);
  if (draft_max != 0) {
    if (drafter == nullptr) judge.reserve(draft_max < 0 ? block_size - 1 : draft_max);
    block.assign(static_cast<size_t>(block_size), kMaskToken);
  }
  if (draft_max < 0) {
    ORTHRUS_CHECK(cost != nullptr);
    draft_length.emplace(*cost, block_size, setup.options->sampling.temperature,
                         judge.keeps_rows());
  }
  if (prompt_logprobs) result.prompt_logprobs.reserve(static_cast<size_t>(prompt_size - 1));
  if (sampler.can_scan() && !judge.keeps_rows() && logprobs < 0 && !prompt_logprobs) {
    scan.emplace(sampler.draw_of_rows(), block_size);
  }
  if (room == 0 && !prompt_logprobs) finish(FinishReason::kLength);
}

void Decoder::Impl::recompute() {
  ORTHRUS_CHECK(phase != Phase::kDraft && table.length() < count);
  if (phase != Phase::kVerify) return;
  // The draft pass counts where its drafts are judged.
  phase = Phase::kCycle;
  drafts = 0;
  --result.forward_passes;
}

Span Decoder::Impl::plan(int64_t max_rows, int64_t companions) {
  ORTHRUS_CHECK(phase != Phase::kFinished && max_rows >= 1);
  table.reserve(capacity_at(count));
  Span span;
  if (in_prefill()) {
    span = plan_prefill(max_rows);
  } else if (phase == Phase::kVerify) {
    span = plan_verify(max_rows);
  } else {
    span = plan_cycle(max_rows, companions);
  }
  planned = static_cast<int64_t>(span.tokens.size());
  planned_rows = span.logits_end - span.logits_begin;
  if (scan && planned_rows > 0) {
    scan->expect(planned_rows, sampler.key(count, NoiseStream::kToken));
    span.reader = &*scan;
  }
  return span;
}

Span Decoder::Impl::plan_prefill(int64_t max_rows) {
  const auto [wanted, begin, scored] = next_prompt_rows();
  const int64_t rows = std::min(wanted, max_rows);
  const bool last = phase == Phase::kPrefill && begin + rows == prompt_size;
  return {&table,
          View::kAr,
          history(begin + rows).last(static_cast<size_t>(rows)),
          begin,
          scored ? 0
          : last ? rows - 1
                 : rows,
          rows};
}

Span Decoder::Impl::plan_cycle(int64_t max_rows, int64_t companions) {
  drafts = choose_drafts(max_rows, companions);
  if (drafts > 0 && drafter != nullptr) take_drafts_of_drafter();
  if (drafts > 0 && drafter == nullptr) {
    phase = Phase::kDraft;
    return plan_draft();
  }
  phase = Phase::kVerify;
  return plan_verify(max_rows);
}

int64_t Decoder::Impl::choose_drafts(int64_t max_rows, int64_t companions) {
  const int64_t room = limit - count;  // >= 1
  if (draft_max >= 0) {
    // As in the official loop the block may end with the limit; the bonus token then falls away.
    return std::min({draft_max, room, max_rows - 1});
  }
  return draft_length->choose({.most = std::min(room, max_rows) - 1,
                               .remaining = room,
                               .context = table.length(),
                               .companions = companions});
}

void Decoder::Impl::take_drafts_of_drafter() {
  const std::vector<int32_t> proposed = drafter->draft(known(), drafts);
  drafts = std::min(drafts, static_cast<int64_t>(proposed.size()));
  std::copy_n(proposed.begin(), drafts, tokens.begin() + count);
  judge.keep_none();
}

Span Decoder::Impl::plan_draft() {
  block[0] = tokens[static_cast<size_t>(count - 1)];
  return {&table,
          View::kDiffusion,
          std::span(block).first(static_cast<size_t>(drafts + 1)),
          count - 1,
          0,
          drafts,
          judge.keeps_rows()};
}

Span Decoder::Impl::plan_verify(int64_t max_rows) {
  drafts = std::min(drafts, max_rows - 1);
  const size_t rows = static_cast<size_t>(drafts + 1);
  return {&table, View::kAr, history(count + drafts).last(rows), count - 1, 0, drafts + 1};
}

void Decoder::Impl::consume(std::span<const float> logits) {
  switch (phase) {
    case Phase::kPrefill:
      return consume_prefill(logits);
    case Phase::kDraft:
      return consume_draft(logits);
    case Phase::kVerify:
      return consume_verify(logits);
    case Phase::kCycle:
      table.set_length(table.length() + planned);  // computed again
      return;
    case Phase::kFinished:
      return;  // cancelled in the meantime
  }
}

void Decoder::Impl::consume_prefill(std::span<const float> logits) {
  if (prompt_logprobs) score_prompt(logits);
  if (error) return;
  table.set_length(table.length() + planned);
  if (table.length() < prompt_size) return;
  ++result.forward_passes;  // one, whatever the chunks
  phase = Phase::kCycle;
  if (limit == prompt_size) return finish(FinishReason::kLength);
  emit_chosen(row(logits, prompt_logprobs ? planned - 1 : 0));
}

/// Row i belongs to the token at table.length() + i and scores the one behind it.
void Decoder::Impl::score_prompt(std::span<const float> logits) {
  auto& scores = result.prompt_logprobs;
  for (int64_t i = 0; i < planned && !error; ++i) {
    const int64_t next = table.length() + i + 1;
    // After recompute() rows come a second time.
    if (next >= prompt_size || next != static_cast<int64_t>(scores.size()) + 1) continue;
    const std::span<const float> scored = row(logits, i).logits;
    if (ops.argmax(scored.data(), vocab) < 0) return fail_here();
    scores.push_back(logprobs_of(tokens[static_cast<size_t>(next)], scored));
  }
}

void Decoder::Impl::consume_draft(std::span<const float> logits) {
  ++result.forward_passes;
  phase = Phase::kVerify;
  int64_t usable = 0;
  for (; usable < drafts; ++usable) {
    const auto token = judge.draft(row(logits, usable), history(count + usable));
    if (!token) break;  // a row that is not finite ends the draft
    tokens[static_cast<size_t>(count + usable)] = *token;
  }
  drafts = usable;
  judge.keep(logits, drafts);
}

void Decoder::Impl::consume_verify(std::span<const float> logits) {
  ++result.forward_passes;
  ++result.cycles;
  const int64_t proposed = drafts;
  const int64_t anchor = count - 1;
  drafts = 0;
  phase = Phase::kCycle;
  int64_t accepted = 0;
  bool refused = false;
  while (accepted < proposed && !refused && phase == Phase::kCycle) {
    const auto verdict =
        judge.judge(accepted, tokens[static_cast<size_t>(count)], row(logits, accepted), known());
    if (!verdict) {
      fail_here();
      break;
    }
    refused = !verdict->accepted;
    accepted += verdict->accepted ? 1 : 0;
    emit(verdict->token, row(logits, accepted - (verdict->accepted ? 1 : 0)));
  }
  if (phase == Phase::kCycle && !refused) emit_chosen(row(logits, accepted));
  table.set_length(anchor + 1 + accepted);
  result.drafted += proposed;
  result.accepted += accepted;
  result.drafted_per_cycle.push_back(proposed);
  result.accepted_per_cycle.push_back(accepted);
  result.kl_mean = judge.kl_mean();
  result.conflict_rate = judge.conflict_rate();
  if (draft_length) draft_length->observe(proposed, accepted);
}

void Decoder::Impl::emit_chosen(const LogitsRow& row) {
  const auto token = sampler.choose(row, known(), NoiseStream::kToken);
  if (token) return emit(*token, row);
  fail_here();
}

bool Decoder::Impl::hand_to_sink(int32_t token) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const bool wanted = sink->on_token(token);
  sink_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  return wanted;
}

void Decoder::Impl::emit(int32_t token, const LogitsRow& row) {
  tokens[static_cast<size_t>(count++)] = token;
  table.reserve(capacity_at(count));
  result.token_ids.push_back(token);
  if (logprobs >= 0) result.logprobs.push_back(logprobs_of(token, row.logits));
  const auto among = [token](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  const bool wanted = sink == nullptr || among(silent_ends) || hand_to_sink(token);
  if (phase == Phase::kFinished) return;  // the sink cancelled
  if (!wanted || among(ends)) {
    finish(FinishReason::kStop);
  } else if (count == limit) {
    finish(FinishReason::kLength);
  }
}

void Decoder::Impl::finish(FinishReason reason) {
  phase = Phase::kFinished;
  result.finish_reason = reason;
}

void Decoder::Impl::fail_here() {
  error.emplace(
      ErrorKind::kInput,
      fmt::format("generation: no token can follow at position {}: expected finite logits "
                  "and a token that is not banned, found NaN, infinity or neither",
                  count));
  phase = Phase::kFinished;
}

Decoder::Decoder(const Setup& setup) : impl_(std::make_unique<Impl>(setup)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

bool Decoder::finished() const { return impl_->phase == Impl::Phase::kFinished; }
bool Decoder::in_prefill() const { return impl_->in_prefill(); }
PrefillPace::Prompt Decoder::next_prompt_rows() const { return impl_->next_prompt_rows(); }
int64_t Decoder::capacity_wanted() const { return impl_->capacity_wanted(); }
void Decoder::recompute() { impl_->recompute(); }
Span Decoder::plan(int64_t max_rows, int64_t companions) {
  return impl_->plan(max_rows, companions);
}
void Decoder::consume(std::span<const float> logits) { impl_->consume(logits); }
double Decoder::take_sink_seconds() { return std::exchange(impl_->sink_seconds, 0.0); }
void Decoder::cancel() {
  if (!finished()) impl_->finish(FinishReason::kCancelled);
}
const std::optional<Error>& Decoder::error() const { return impl_->error; }
const GenerateResult& Decoder::result() const { return impl_->checked_result(); }
std::span<const int32_t> Decoder::tokens() const { return impl_->known(); }

}  // namespace orthrus
