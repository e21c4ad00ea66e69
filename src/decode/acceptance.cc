#include "decode/acceptance.h"

#include <algorithm>

namespace orthrus {

void AcceptanceProfile::observe(int64_t drafted, int64_t accepted) {
  for (double& count : tried_) count *= decay_;
  for (double& count : accepted_) count *= decay_;
  for (int64_t place = 0; place < drafted && place <= accepted; ++place) {
    const size_t i = static_cast<size_t>(std::min(place, kPlaces - 1));
    tried_[i] += 1;
    accepted_[i] += place < accepted ? 1 : 0;
  }
}

double AcceptanceProfile::prior_rate(size_t place, const AcceptanceProfile* prior) const {
  return prior == nullptr ? kUnknown : prior->rate(static_cast<int64_t>(place), nullptr);
}

double AcceptanceProfile::rate(int64_t place, const AcceptanceProfile* prior) const {
  // How the whole profile does against its prior: a request that fails at the first place is not
  // believed to do well at the next.
  double expected = kPriorWeight, found = kPriorWeight;
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (tried_[i] == 0) continue;
    expected += tried_[i] * prior_rate(i, prior);
    found += accepted_[i];
  }
  const size_t i = static_cast<size_t>(std::min(place, kPlaces - 1));
  const double base = std::min(prior_rate(i, prior) * found / expected, 0.99);
  return (accepted_[i] + kPriorWeight * base) / (tried_[i] + kPriorWeight);
}

}  // namespace orthrus
