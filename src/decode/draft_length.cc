#include "decode/draft_length.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace orthrus {
namespace {

constexpr double kRequestDecay = 0.96;  // half-life 17 cycles
constexpr double kAllowance = 0.01;     // of the time of plain steps may go into probes
constexpr double kOpening = 3;          // plain steps that a promising start may lose,
constexpr double kSureOpening = 5;      // and where earlier requests had a
constexpr double kSureGain = 1.1;       // gain like this
constexpr double kSureCycles = 16;      // over so many cycles
constexpr double kCeiling = 12;      // plain steps of past gain, or of allowance, that may be lost
constexpr double kMostLost = 0.045;  // of the time of an answer may be lost in all
constexpr double kGainToStart = 1.03;  // predicted gain over AR to leave it
constexpr double kGainToStay = 1.01;
constexpr double kGainToChange = 1.02;  // from one number of drafts to another
constexpr double kMostExpensiveProbe = 8;
constexpr int64_t kArPassesWanted = 3;  // before its time is believed
constexpr int64_t kTimedEnough = 8;     // passes of a length before its time is believed
constexpr int64_t kArEvery = 128;       // cycles: a plain step keeps its time fresh

}  // namespace

DraftLength::DraftLength(CostModel& cost, int64_t block_size, double temperature, bool whole_logits)
    : cost_(cost),
      block_size_(block_size),
      whole_logits_(whole_logits),
      others_(cost.acceptance(temperature)),
      acceptance_(kRequestDecay) {}

PassShape DraftLength::plain_pass(const Situation& s) {
  PassShape shape;
  shape.add(View::kAr, 1, 1, s.context, s.companions);
  return shape;
}

PassShape DraftLength::cycle_pass(int64_t drafts, int64_t drafting, const Situation& s) const {
  PassShape shape;
  shape.add(View::kDiffusion, drafts + 1, drafts, s.context, drafting);
  if (whole_logits_) shape.draft_logit_rows = 0;
  shape.add(View::kAr, drafts + 1, drafts + 1, s.context, s.companions - drafting);
  return shape;
}

double DraftLength::seconds(int64_t drafts, const Situation& s) const {
  if (drafts == 0) return cost_.predict(plain_pass(s));
  const int64_t half = s.companions / 2;
  return cost_.predict(cycle_pass(drafts, s.companions - half, s)) +
         cost_.predict(cycle_pass(drafts, half, s));
}

DraftLength::Best DraftLength::best_drafts(const Situation& s, double most_seconds) const {
  const AcceptanceProfile::Rates rates = acceptance_.rates(others_.rates());
  Best best, last;
  double expected = 1, reached = 1;
  const int64_t most = std::min(s.most, block_size_ - 1);
  for (int64_t k = 1; k <= most; ++k) {
    reached *= rates[static_cast<size_t>(std::min(k, AcceptanceProfile::kPlaces) - 1)];
    expected += reached;
    const double time = seconds(k, s);
    if (time > most_seconds) continue;
    const Best here{k, time, expected / time};
    if (here.rate > best.rate) best = here;
    if (k == last_drafts_) last = here;
  }
  return last.rate * kGainToChange >= best.rate ? last : best;
}

/// Whether the estimate is clearly on the drafts' side.
bool DraftLength::promising(const Best& best) const {
  const bool drafting = last_drafts_ > 0 && !probing_;
  return best.rate * ar_seconds_ >= (drafting ? kGainToStay : kGainToStart);
}

/// Plain steps that the start of a request may lose.
double DraftLength::opening(const Best& best) const {
  if (!promising(best)) return 0;
  const bool sure = others_.cycles() >= kSureCycles && best.rate * ar_seconds_ >= kSureGain;
  return sure ? kSureOpening : kOpening;
}

double DraftLength::affordable_loss() const {
  return std::min(account_ + cost_.allowance().seconds, won_ + most_lost_);
}

DraftLength::Best DraftLength::choose_freely(const Situation& s) {
  const Best best = best_drafts(s, std::numeric_limits<double>::infinity());
  if (best.drafts == 0) return {};
  if (!opened_) {
    opened_ = true;
    account_ = opening(best) * ar_seconds_;
    most_lost_ = kMostLost * static_cast<double>(s.remaining) * ar_seconds_;
  }
  if (!promising(best)) {
    probing_ = affordable_loss() >= cost_.allowance().probe_price * (best.seconds - ar_seconds_);
    return probing_ ? best : Best{};
  }
  const Best affordable = best_drafts(s, ar_seconds_ + affordable_loss());
  if (!promising(affordable)) return {};
  probing_ = false;
  const Best longer = longer_untimed(affordable, s);
  return longer.drafts > 0 ? longer : affordable;
}

/// Where the last block was taken whole and longer ones were hardly ever timed, the next longer
/// one: otherwise a prediction that is too high would never be corrected.
DraftLength::Best DraftLength::longer_untimed(const Best& best, const Situation& s) const {
  const int64_t longer = best.drafts + std::max<int64_t>(1, best.drafts / 4);
  if (!took_all_ || longer > std::min(s.most, block_size_ - 1)) return {};
  const PassShape pass = cycle_pass(longer, s.companions / 2, s);
  const double time = seconds(longer, s);
  if (cost_.observations(pass) >= kTimedEnough || time - ar_seconds_ > affordable_loss()) return {};
  return {longer, time, 0};
}

int64_t DraftLength::choose(const Situation& s) {
  settle();
  situation_ = s;
  ar_seconds_ = seconds(0, s);
  const bool ar_known =
      cost_.observations(plain_pass(s)) >= kArPassesWanted && since_ar_ < kArEvery;
  last_drafts_ = ar_known ? choose_freely(s).drafts : 0;
  return last_drafts_;
}

void DraftLength::observe(int64_t drafted, int64_t accepted) {
  since_ar_ = drafted == 0 ? 0 : since_ar_ + 1;
  took_all_ = drafted > 0 && accepted == drafted;
  unsettled_tokens_ = accepted + 1;
  if (drafted == 0) return;
  acceptance_.observe(drafted, accepted);
  others_.observe(drafted, accepted);
}

/// Enters the last cycle into the account; not before the next one, when the cost model has seen
/// its passes.
void DraftLength::settle() {
  if (unsettled_tokens_ == 0) return;
  const double plain = seconds(0, situation_);
  const double share = 1 / static_cast<double>(situation_.companions);
  CostModel::Allowance& shared = cost_.allowance();
  if (last_drafts_ == 0) {
    shared.seconds = std::min(shared.seconds + share * kAllowance * plain, kCeiling * plain);
  } else {
    const double won =
        static_cast<double>(unsettled_tokens_) * plain - seconds(last_drafts_, situation_);
    account_ += won;
    won_ += won;
    if (probing_) {
      shared.probe_price = won > 0 ? 1 : std::min(2 * shared.probe_price, kMostExpensiveProbe);
    }
  }
  if (account_ < 0) shared.seconds += share * std::exchange(account_, 0.0);
  account_ = std::min(account_, kCeiling * plain);
  unsettled_tokens_ = 0;
}

}  // namespace orthrus
