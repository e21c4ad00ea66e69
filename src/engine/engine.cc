#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/error.h"

namespace orthrus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFirstBatch = 4;

BatchController::Options controller_options(const EngineOptions& options) {
  return {.first = options.dynamic_batch ? kFirstBatch : options.decode_batch_size,
          .most = options.decode_batch_size,
          .target = options.memory_utilization_target,
          .interval = std::chrono::milliseconds(options.dynamic_adjust_interval_ms)};
}

}  // namespace

/// One request: waiting (no blocks), then in its prefill, then in decode.
struct Engine::Sequence {
  Sequence(const Parts& parts, PrefixIndex* index, EngineRequest request, EngineListener& heard_by)
      : claim{std::move(request.client), request.priority, 0},
        listener(heard_by),
        answer(parts.answers, request.prompt, std::move(request.options), &heard_by),
        table(parts.pool, index) {}

  bool is_waiting() const { return table.capacity() == 0; }
  bool in_prefill() const { return !is_waiting() && answer.decoder()->in_prefill(); }

  Claim claim;  // arrival is the request's number
  EngineListener& listener;
  Answer answer;
  BlockTable table;
  bool has_begun = false;
  bool has_run = false;     // some of its prompt
  size_t tokens_heard = 0;  // that on_step has told of
  bool ended = false;
};

Engine::Engine(const Parts& parts, const EngineOptions& options)
    : parts_(parts),
      options_(options),
      loop_(parts.forward, parts.answers.cost),
      index_(parts.pool),
      controller_(controller_options(options)) {
  ORTHRUS_CHECK(options.prefill_batch_size >= 1 && options.decode_batch_size >= 1);
  // One request alone can always go on, so that preemption always ends.
  ORTHRUS_CHECK(parts.pool.max_blocks() >= blocks_for(parts.answers.max_seq_len));
}

Engine::~Engine() = default;

std::vector<uint64_t> Engine::submit(std::vector<Submission> submissions) {
  Sequences sequences;
  for (Submission& s : submissions) {
    sequences.push_back(
        std::make_unique<Sequence>(parts_, &index_, std::move(s.request), *s.listener));
  }
  std::vector<uint64_t> ids;
  const std::lock_guard lock(mutex_);
  if (stopped_) throw Error(ErrorKind::kInternal, "the engine was stopped");
  for (auto& sequence : sequences) {
    ids.push_back(sequence->claim.arrival = next_id_++);
    submitted_.push_back(std::move(sequence));
  }
  news_.notify_one();
  return ids;
}

uint64_t Engine::submit(EngineRequest request, EngineListener& listener) {
  std::vector<Submission> one;
  one.push_back({std::move(request), &listener});
  return submit(std::move(one)).front();
}

void Engine::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(id);
  news_.notify_one();
}

bool Engine::step() {
  in_pass_ = false;
  take_news();
  schedule();
  in_pass_ = true;
  if (!pass_.empty()) run_pass();
  postprocess();
  publish_stats();
  return !sequences_.empty();
}

void Engine::run(const std::stop_token& stop) {
  set_stopped(false);
  while (!stop.stop_requested()) {
    bool busy = false;
    try {
      busy = step();
    } catch (const Error& error) {
      busy = fail_pass(error);
    } catch (const std::exception& error) {
      busy = fail_pass(Error(ErrorKind::kInternal, error.what()));
    }
    if (busy) continue;
    std::unique_lock lock(mutex_);
    news_.wait(lock, stop, [&] { return !submitted_.empty() || !cancelled_.empty(); });
  }
  set_stopped(true);
  take_news();
  for (const auto& s : sequences_) {
    if (!s->ended) cancel(*s);
  }
  sequences_.clear();
  publish_stats();
}

void Engine::set_stopped(bool stopped) {
  const std::lock_guard lock(mutex_);
  stopped_ = stopped;
}

void Engine::take_news() {
  Sequences submitted;
  std::vector<uint64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    stats_.waiting += static_cast<int64_t>(submitted.size());  // until the end of this step
  }
  order_changed_ = order_changed_ || !submitted.empty();
  std::move(submitted.begin(), submitted.end(), std::back_inserter(sequences_));
  for (const uint64_t id : cancelled) {
    const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                    [&](const auto& s) { return s->claim.arrival == id; });
    if (found != sequences_.end() && !(*found)->ended) cancel(**found);
  }
}

/// Goes through the requests in the order of service: the first ones that fit into the batches
/// take part, and those without blocks begin where there is room.
void Engine::schedule() {
  if (std::exchange(order_changed_, false)) order();
  observe_memory();
  pass_.clear();
  had_room_ = true;
  demand_ = 0;
  int64_t prompts = 0, answers = 0, rank = 0;
  for (const auto& s : sequences_) {
    if (s->ended) continue;
    // Nobody overtakes the first one that there was no room for.
    if (s->is_waiting() && had_room_ && may_begin(*s, rank)) had_room_ = begin(*s) && had_room_;
    ++rank;
    if (s->is_waiting() || s->ended) continue;
    int64_t& places = s->in_prefill() ? prompts : answers;
    if (places >= (s->in_prefill() ? options_.prefill_batch_size : controller_.batch())) continue;
    const int64_t missing = s->table.blocks_missing(s->answer.decoder()->capacity_wanted());
    if (!make_room(*s, missing)) {
      preempt(*s);
      continue;
    }
    demand_ += missing;
    ++places;
    pass_.push_back(s.get());
  }
  prefill_terms_ = {answers > 0 ? options_.prefill_share : std::numeric_limits<double>::infinity(),
                    first_prompt_is_new()};
  if (options_.prefill_mode == PrefillMode::kSeparate && prompts > 0 && answers > 0) {
    prompts_turn_ = !prompts_turn_ && (prefill_terms_.borrow || loop_.pace().affords_own_pass());
    std::erase_if(pass_, [&](const Sequence* s) { return s->in_prefill() != prompts_turn_; });
  }
}

/// Whether nothing of the first prompt has been read yet, and its client has nothing else running:
/// it shall not wait for all that another client has asked for.
bool Engine::first_prompt_is_new() const {
  const auto first =
      std::find_if(pass_.begin(), pass_.end(), [](const Sequence* s) { return s->in_prefill(); });
  if (first == pass_.end() || (*first)->has_run) return false;
  return std::none_of(sequences_.begin(), sequences_.end(), [&](const auto& s) {
    return s.get() != *first && !s->is_waiting() && s->claim.client == (*first)->claim.client;
  });
}

void Engine::run_pass() {
  decoders_.clear();
  for (Sequence* s : pass_) decoders_.push_back(s->answer.decoder());
  times_.assign(pass_.size(), {});
  loop_.step(decoders_, times_, prefill_terms_);
  ++counts_.steps;
}

void Engine::postprocess() {
  for (size_t i = 0; i < pass_.size(); ++i) {
    Sequence& s = *pass_[i];
    s.answer.add(times_[i]);
    s.has_run = s.has_run || times_[i].prefill_seconds > 0;
    s.table.publish(s.answer.tokens());
    const Decoder& decoder = *s.answer.decoder();
    if (decoder.finished()) {
      finish(s);
    } else if (s.answer.tokens().size() > std::exchange(s.tokens_heard, s.answer.tokens().size())) {
      tell(s, decoder.result());
    }
  }
  pass_.clear();
  if (std::erase_if(sequences_, [](const auto& s) { return s->ended; }) > 0) order_changed_ = true;
}

/// What a listener throws is the end of its request alone.
void Engine::tell(Sequence& s, const GenerateResult& so_far) {
  try {
    s.listener.on_step(so_far);
  } catch (const std::exception& error) {
    fail(s, Error(ErrorKind::kInternal, error.what()));
  }
}

void Engine::order() {
  std::vector<const Claim*> claims;
  for (const auto& s : sequences_) claims.push_back(&s->claim);
  Sequences sorted;
  sorted.reserve(sequences_.size());
  for (const size_t i : fair_order(claims)) sorted.push_back(std::move(sequences_[i]));
  sequences_ = std::move(sorted);
}

void Engine::observe_memory() {
  BatchController::Observation seen;
  for (const auto& s : sequences_) {
    if (s->is_waiting()) {
      ++seen.waiting;
    } else if (!s->in_prefill()) {
      ++seen.answers;
    }
  }
  seen.utilisation =
      static_cast<double>(blocks_in_use()) / static_cast<double>(parts_.pool.max_blocks());
  seen.spare = had_room_;
  controller_.observe(Clock::now(), seen);
}

/// Whether another request is reading a block that this one begins with too: it is cheaper to wait
/// for it than to read it again (the choices of one prompt, a system prompt that many share).
bool Engine::is_being_read(const Sequence& sequence) const {
  const auto wanted =
      sequence.answer.tokens().first(static_cast<size_t>(sequence.answer.reusable_tokens()));
  return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& other) {
    if (!other->in_prefill()) return false;
    const auto tokens = other->answer.tokens();
    const auto common = std::mismatch(wanted.begin(), wanted.end(), tokens.begin(), tokens.end());
    return common.first - wanted.begin() >= other->table.shared_tokens() + kKvBlockTokens;
  });
}

/// Only so many requests hold blocks as have a place in the next batches. Where memory is tight,
/// new ones wait, but for those of a client that has nothing running.
bool Engine::may_begin(const Sequence& sequence, int64_t rank) const {
  if (rank >= options_.prefill_batch_size + controller_.batch()) return false;
  if (is_being_read(sequence)) return false;
  if (controller_.admits()) return true;
  return std::none_of(sequences_.begin(), sequences_.end(), [&](const auto& s) {
    return !s->is_waiting() && s->claim.client == sequence.claim.client;
  });
}

/// Gives a waiting request its first blocks; false where there is no room for them. What goes wrong
/// there is the end of this request alone.
bool Engine::begin(Sequence& s) {
  try {
    return try_begin(s);
  } catch (const Error& error) {
    fail(s, error);
  } catch (const std::exception& error) {
    fail(s, Error(ErrorKind::kInternal, error.what()));
  }
  return true;
}

bool Engine::try_begin(Sequence& s) {
  Answer& answer = s.answer;
  s.table.adopt_prefix(answer.tokens().first(static_cast<size_t>(answer.reusable_tokens())));
  if (answer.decoder()) {
    answer.decoder()->recompute();
  } else {
    answer.start(s.table);
  }
  if (answer.decoder()->finished()) {
    finish(s);
    return true;
  }
  // A block to spare for each one before it, or they would soon push this one out again.
  int64_t spare = 0;
  for (const auto& other : sequences_) {
    if (other.get() == &s) break;
    spare += other->is_waiting() ? 0 : 1;
  }
  if (!make_room(s, s.table.blocks_missing(answer.decoder()->capacity_wanted()) + spare)) {
    give_back(s);
    return false;
  }
  s.table.reserve(static_cast<int64_t>(answer.tokens().size()));
  if (std::exchange(s.has_begun, true)) return true;  // what it finds now was its own
  s.tokens_heard = answer.prompt().size();
  answer.set_cached_tokens(s.table.length());
  if (s.table.length() > 0) ++counts_.prefix_hits;
  counts_.prefix_hit_tokens += s.table.length();
  return true;
}

/// Whether the pool can give `blocks` beside those that the pass so far may take: idle blocks go
/// first, then those of the requests after this one in the order of service, the last one first.
bool Engine::make_room(const Sequence& sequence, int64_t blocks) {
  for (auto last = sequences_.rbegin(); !index_.make_room(demand_ + blocks); ++last) {
    had_room_ = false;
    if (last->get() == &sequence) return false;
    preempt(**last);
  }
  return true;
}

void Engine::preempt(Sequence& s) {
  if (s.is_waiting() || s.ended) return;
  ++counts_.preemptions;
  give_back(s);
}

/// Back to waiting, without blocks.
void Engine::give_back(Sequence& s) {
  s.table = BlockTable(parts_.pool, &index_);
  s.answer.decoder()->recompute();
}

void Engine::cancel(Sequence& s) {
  s.answer.cancel();
  finish(s);
}

void Engine::finish(Sequence& s) {
  GenerateResult result;
  try {
    result = s.answer.finish();
  } catch (const Error& error) {
    return fail(s, error);
  }
  end(s);
  s.listener.on_done(std::move(result));
}

void Engine::fail(Sequence& s, const Error& error) {
  end(s);
  s.listener.on_failed(error);
}

/// Nobody hears of the request any more but of its end, and its blocks are free.
void Engine::end(Sequence& s) {
  s.ended = true;
  s.table = BlockTable(parts_.pool, &index_);
}

/// A step failed, say for lack of memory. Those that took part in its pass are left in the middle
/// of it and end here (all do where there was no pass yet); the others go on. Whether there are
/// any.
bool Engine::fail_pass(const Error& error) {
  for (const auto& s : sequences_) {
    const bool took_part = std::find(pass_.begin(), pass_.end(), s.get()) != pass_.end();
    if (!s->ended && (took_part || !in_pass_)) fail(*s, error);
  }
  pass_.clear();
  std::erase_if(sequences_, [](const auto& s) { return s->ended; });
  order_changed_ = true;
  publish_stats();
  return !sequences_.empty();
}

void Engine::publish_stats() {
  EngineStats& now = counts_;
  now.waiting = now.prefilling = now.decoding = 0;
  for (const auto& s : sequences_) {
    ++(s->is_waiting() ? now.waiting : s->in_prefill() ? now.prefilling : now.decoding);
  }
  now.batch = controller_.batch();
  now.blocks_in_use = blocks_in_use();
  now.blocks_idle = index_.idle_blocks();
  now.blocks = parts_.pool.max_blocks();
  const std::lock_guard lock(mutex_);
  stats_ = now;
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats now = stats_;
  now.waiting += static_cast<int64_t>(submitted_.size());
  return now;
}

}  // namespace orthrus
