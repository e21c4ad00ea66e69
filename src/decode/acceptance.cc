#include "decode/acceptance.h"

#include <algorithm>
#include <cstddef>

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

double AcceptanceProfile::blend(int64_t place, double prior) const {
  const size_t i = static_cast<size_t>(place);
  return (accepted_[i] + kPriorWeight * prior) / (tried_[i] + kPriorWeight);
}

AcceptanceProfile::Rates AcceptanceProfile::rates() const {
  Rates rates;
  double before = kUnknown;
  for (int64_t place = 0; place < kPlaces; ++place) {
    before = rates[static_cast<size_t>(place)] = blend(place, before);
  }
  return rates;
}

AcceptanceProfile::Rates AcceptanceProfile::rates(const Rates& prior) const {
  double expected = kPriorWeight, found = kPriorWeight;
  for (size_t i = 0; i < prior.size(); ++i) {
    expected += tried_[i] * prior[i];
    found += accepted_[i];
  }
  Rates rates;
  for (int64_t place = 0; place < kPlaces; ++place) {
    const size_t i = static_cast<size_t>(place);
    rates[i] = blend(place, std::min(prior[i] * found / expected, 0.99));
  }
  return rates;
}

}  // namespace orthrus
