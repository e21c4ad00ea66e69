#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orthrus {

/// How often the draft at each place of a block is accepted, given that all before it were: decayed
/// counts over cycles, on top of a prior.
class AcceptanceProfile {
 public:
  static constexpr int64_t kPlaces = 64;  ///< places beyond share the last one

  /// `decay`: what a cycle's counts are worth one cycle later.
  explicit AcceptanceProfile(double decay) : decay_(decay) {}

  /// A cycle judged its drafts in order, `accepted` of `drafted` were taken.
  void observe(int64_t drafted, int64_t accepted);
  /// Probability at place 0, 1, ...; with little seen it leans on `prior` at that place, scaled by
  /// how the places that were seen did against theirs. Without a prior: on kUnknown.
  double rate(int64_t place, const AcceptanceProfile* prior) const;

 private:
  static constexpr double kUnknown = 0.75;   ///< a trained adapter; soon corrected
  static constexpr double kPriorWeight = 4;  ///< cycles that a prior counts as
  double prior_rate(size_t place, const AcceptanceProfile* prior) const;

  double decay_;
  std::array<double, kPlaces> tried_{};
  std::array<double, kPlaces> accepted_{};
};

}  // namespace orthrus
