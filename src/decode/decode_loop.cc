#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "decode/decoder.h"

namespace orthrus {
namespace {

PassShape shape_of(std::span<const Span> spans) {
  PassShape shape;
  for (const Span& span : spans) shape.add(span);
  return shape;
}

}  // namespace

/// Plans the decoders that are (or are not) in their prefill. Sequences in decode share the rows
/// evenly; of the prompts the first ones take all they can.
void DecodeLoop::plan(std::span<Decoder* const> decoders, bool prefill) {
  const auto wanted = [&](const Decoder* d) {
    return !d->finished() && d->in_prefill() == prefill;
  };
  int64_t waiting = std::count_if(decoders.begin(), decoders.end(), wanted);
  const int64_t companions = waiting;
  for (size_t i = 0; i < decoders.size() && rows_left_ > 0; ++i) {
    if (!wanted(decoders[i])) continue;
    const int64_t share = prefill ? rows_left_ : rows_left_ / waiting;
    spans_.push_back(decoders[i]->plan(std::max<int64_t>(share, 1), companions));
    members_.push_back({i, prefill});
    rows_left_ -= static_cast<int64_t>(spans_.back().tokens.size());
    --waiting;
  }
}

int64_t DecodeLoop::prefill_rows(std::span<Decoder* const> decoders,
                                 const PrefillPace::Terms& terms) {
  if (std::isinf(terms.share)) return rows_left_;
  prompts_.clear();
  for (const Decoder* d : decoders) {
    if (!d->finished() && d->in_prefill()) prompts_.push_back(d->next_prompt_rows());
  }
  return pace_.rows(shape_of(spans_), prompts_, terms, rows_left_);
}

bool DecodeLoop::step(std::span<Decoder* const> decoders, std::span<Times> times,
                      const PrefillPace::Terms& prefill) {
  using Clock = std::chrono::steady_clock;
  ORTHRUS_CHECK(times.size() >= decoders.size());
  const Clock::time_point start = Clock::now();
  spans_.clear();
  members_.clear();
  rows_left_ = forward_.max_rows();
  plan(decoders, /*prefill=*/false);
  rows_left_ = prefill_rows(decoders, prefill);
  plan(decoders, /*prefill=*/true);
  if (spans_.empty()) return false;

  const Logits logits = forward_.run(spans_);
  for (size_t i = 0; i < spans_.size(); ++i) {
    decoders[members_[i].index]->consume(logits.of(i));
  }

  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  // A slow reader of the text must not teach the cost model that passes are slow.
  for (const Member& member : members_) seconds -= decoders[member.index]->take_sink_seconds();
  for (const Member& member : members_) {
    Times& t = times[member.index];
    (member.prefill ? t.prefill_seconds : t.decode_seconds) += seconds;
  }
  cost_.observe(shape_of(spans_), seconds);
  return true;
}

}  // namespace orthrus
