#pragma once

#include <array>
#include <cstdint>

namespace orthrus {

/// How often the draft at each place of a block is accepted, given that all before it were: decayed
/// counts over cycles.
class AcceptanceProfile {
 public:
  static constexpr int64_t kPlaces = 64;  ///< places beyond share the last one
  using Rates = std::array<double, kPlaces>;

  /// `decay`: what a cycle's counts are worth one cycle later.
  explicit AcceptanceProfile(double decay) : decay_(decay) {}

  /// A cycle judged its drafts in order; `accepted` of `drafted` were taken.
  void observe(int64_t drafted, int64_t accepted);
  /// Cycles seen, decayed.
  double cycles() const { return tried_[0]; }
  /// Estimates from these counts alone. A place seldom reached is taken to be as good as the one
  /// before it, so that longer blocks get tried.
  Rates rates() const;
  /// Estimates of one request on top of what was known before: `prior`, scaled by how the request
  /// has done against it so far, then its own counts. A request that fails at the first place is
  /// not believed to do well at the next.
  Rates rates(const Rates& prior) const;

 private:
  static constexpr double kUnknown = 0.75;   ///< of a trained adapter; soon corrected
  static constexpr double kPriorWeight = 4;  ///< cycles that a prior counts as
  double blend(int64_t place, double prior) const;

  double decay_;
  Rates tried_{};
  Rates accepted_{};
};

}  // namespace orthrus
