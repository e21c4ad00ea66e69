#pragma once

#include <cstdint>
#include <vector>

#include "decode/acceptance.h"
#include "decode/cost_model.h"

namespace orthrus {

/// Chooses how many drafts a cycle of one request makes, 0 (plain AR) included: the number with the
/// most expected tokens per second, E(k) / time(k), where E(k) = 1 + sum over i <= k of the
/// probability that the first i drafts are accepted, and time(k) is that of a draft and a verify
/// pass of k + 1 rows (one AR row for k = 0). Requests that share passes do not keep step, so half
/// of them are taken to draft while the others verify: such passes read the weights of both views.
///
/// Never slower than AR: an account holds the time that a request has won or lost against plain AR.
/// It starts with what a promising start may lose, and cycles earn what they win. Plain steps earn
/// a small allowance, which all requests share. A cycle runs only if both together could bear it
/// failing, and none that could cost a short answer more than a small share of its time. Requests
/// that share passes draft together and lose the same time together, so each has its share in what
/// a pass gives to the allowance and takes from it.
class DraftLength {
 public:
  /// temperature: of the request's sampling, 0 for greedy. whole_logits: see Span.
  DraftLength(CostModel& cost, int64_t block_size, double temperature, bool whole_logits = false);

  struct Situation {
    int64_t most = 0;        ///< drafts that limits leave room for
    int64_t remaining = 0;   ///< tokens that may still follow
    int64_t context = 0;     ///< tokens in the cache
    int64_t companions = 1;  ///< sequences that share the pass, this one included
  };
  /// Drafts of the next cycle, 0 to min(most, block_size - 1).
  int64_t choose(const Situation& situation);
  /// What came of the cycle that choose() was last asked for.
  void observe(int64_t drafted, int64_t accepted);

 private:
  static PassShape plain_pass(const Situation& situation);
  /// One of the two passes of a cycle, in which `drafting` of the companions draft and the others
  /// verify.
  PassShape cycle_pass(int64_t drafts, int64_t drafting, const Situation& situation) const;
  double seconds(int64_t drafts, const Situation& situation) const;
  struct Best {
    int64_t drafts = 0;
    double seconds = 0;
    double rate = 0;  // tokens per second
  };
  /// Of the numbers whose cycle takes at most `most_seconds`; the last choice stays unless clearly
  /// beaten.
  Best best_drafts(const Situation& situation, double most_seconds) const;
  bool promising(const Best& best) const;
  double opening(const Best& best) const;
  double affordable_loss() const;
  void settle();
  Best choose_freely(const Situation& situation);
  Best longer_untimed(const Best& best, const Situation& situation) const;

  CostModel& cost_;
  int64_t block_size_;
  bool whole_logits_;
  AcceptanceProfile& others_;  // what requests like this one earned
  AcceptanceProfile acceptance_;
  double account_ = 0;    // seconds won against plain AR, and what the start may lose
  double won_ = 0;        // the same without the latter
  double most_lost_ = 0;  // seconds that the request as a whole may lose
  bool opened_ = false;
  bool probing_ = false;   // the last choice was one that the estimate advises against
  bool took_all_ = false;  // the last cycle's drafts were all accepted
  int64_t last_drafts_ = 0;
  int64_t since_ar_ = 0;          // cycles since the last plain step
  int64_t unsettled_tokens_ = 0;  // of the last cycle, while it is not in the account
  Situation situation_;           // of the last choice
  double ar_seconds_ = 0;         // a plain step there
};

}  // namespace orthrus
