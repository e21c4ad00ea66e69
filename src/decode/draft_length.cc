#include "decode/draft_length.h"

#include <algorithm>

namespace orthrus {
namespace {

constexpr double kRequestDecay = 0.96;  // half-life 17 cycles
constexpr double kAllowance = 0.01;     // of the time of plain steps may go into probes
constexpr double kOpening = 3;          // plain steps that a promising start may lose
constexpr double kCeiling = 12;         // plain steps of past gain that may be lost again
constexpr double kGainToStart = 1.03;   // predicted gain over AR to leave it
constexpr double kGainToStay = 1.01;
constexpr double kGainToChange = 1.02;  // from one number of drafts to another
constexpr double kMostExpensiveProbe = 16;
constexpr int64_t kArPassesWanted = 3;  // before its time is believed
constexpr int64_t kArEvery = 128;       // cycles: a plain step keeps its time fresh

}  // namespace

DraftLength::DraftLength(CostModel& cost, int64_t block_size)
    : cost_(cost), block_size_(block_size), acceptance_(kRequestDecay) {}

double DraftLength::seconds(int64_t drafts, const Situation& s) const {
  const int64_t rows = s.companions * (drafts + 1);
  const int64_t context = s.companions * s.context;
  const double verify = cost_.predict(
      {.ar_rows = rows, .diffusion_rows = 0, .logit_rows = rows, .context_tokens = context});
  if (drafts == 0) return verify;
  return verify + cost_.predict({.ar_rows = 0,
                                 .diffusion_rows = rows,
                                 .logit_rows = s.companions * drafts,
                                 .context_tokens = context});
}

DraftLength::Best DraftLength::best_drafts(const Situation& s) const {
  Best best{0, 0, 0}, last{0, 0, 0};
  double expected = 1, reached = 1;
  const int64_t most = std::min(s.most, block_size_ - 1);
  for (int64_t k = 1; k <= most; ++k) {
    reached *= acceptance_.rate(k - 1, &cost_.acceptance());
    expected += reached;
    const double time = seconds(k, s);
    const Best here{k, time, expected / time};
    if (here.rate > best.rate) best = here;
    if (k == last_drafts_) last = here;
  }
  return last.rate * kGainToChange >= best.rate && last.drafts > 0 ? last : best;
}

bool DraftLength::affordable(const Best& best, double ar_seconds) {
  const double gain = best.rate * ar_seconds;
  const double loss = std::max(best.seconds - ar_seconds, 0.0);
  const bool promising = gain >= (last_drafts_ > 0 && !probing_ ? kGainToStay : kGainToStart);
  if (!opened_) {
    opened_ = true;
    account_ = promising ? kOpening * ar_seconds : 0;
  }
  probing_ = !promising;
  return account_ >= (promising ? loss : probe_price_ * loss);
}

int64_t DraftLength::choose(const Situation& s) {
  const Best best = best_drafts(s);
  ar_seconds_ = seconds(0, s);
  const PassShape plain{.ar_rows = s.companions,
                        .diffusion_rows = 0,
                        .logit_rows = s.companions,
                        .context_tokens = 0};
  const bool ar_known = cost_.observations(plain) >= kArPassesWanted && since_ar_ < kArEvery;
  const bool draft = best.drafts > 0 && ar_known && affordable(best, ar_seconds_);
  last_drafts_ = draft ? best.drafts : 0;
  chosen_seconds_ = draft ? best.seconds : ar_seconds_;
  return last_drafts_;
}

void DraftLength::observe(int64_t drafted, int64_t accepted) {
  if (drafted == 0) {
    since_ar_ = 0;
    account_ += kAllowance * ar_seconds_;
  } else {
    ++since_ar_;
    acceptance_.observe(drafted, accepted);
    cost_.acceptance().observe(drafted, accepted);
    const double won = static_cast<double>(accepted + 1) * ar_seconds_ - chosen_seconds_;
    account_ += won;
    if (probing_) probe_price_ = won > 0 ? 1 : std::min(2 * probe_price_, kMostExpensiveProbe);
  }
  account_ = std::min(account_, kCeiling * ar_seconds_);
}

}  // namespace orthrus
